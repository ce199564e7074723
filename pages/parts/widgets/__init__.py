"""What every screen is drawn with. Knows no run."""
