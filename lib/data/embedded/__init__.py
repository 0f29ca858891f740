"""Data that ships with the library: a part of Fashion-MNIST and a part of WordNet's glosses, each with its licence.

`python -m lib.data.embedded.make` rebuilds them from their sources; nothing else is read from this folder.
"""
