"""What a first visitor sees: a finished run as a film.

run_film.py   the film as its run's journal tells it, scene by scene
screen.py     it on the page, with the way to the demo that runs meanwhile
"""
