"""Data sets: what is known of them, how they are read, and who plays which role in an experiment."""
