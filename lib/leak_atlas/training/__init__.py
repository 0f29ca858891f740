"""The one training loop, what it minimizes, and what is read off a trained network."""
