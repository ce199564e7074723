"""What hardware can do and what a kernel makes of it. Knows no model and no loop."""
