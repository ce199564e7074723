"""The screens: one file each, `_main.py` routes, `parts/` draws."""
