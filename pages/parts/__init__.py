"""What pages are made of. Each module draws one thing or turns rows into what is drawn; none holds SQL."""
