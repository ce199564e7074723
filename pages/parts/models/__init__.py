"""What the page of the models is made of beside its first table: calibration.py."""
