"""What the page about this machine is made of.

devices_table.py     what the devices of this host do
examined.py          the doctor's report, one for all sessions, and its sections
"""
