"""What the page about this machine is made of: findings_table.py."""
