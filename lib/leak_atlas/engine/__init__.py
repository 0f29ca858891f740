"""What every room stands on: paths, files, the store, digests of code, and the table of what
computes each kind.
"""
