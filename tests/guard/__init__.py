"""Saved runs of every kind, and what was made of them at every moment of their journals before the search core was
rebuilt. See README.md; neither the runs nor what is expected of them are ever made again.
"""
