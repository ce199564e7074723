"""What the pages of the knowledge base are made of.

known_tables.py, evidence_table.py      states and techniques with their figures; every attempt, and its prediction
technique_story.py, technique_graph.py  one technique; all of them with their states as a picture
changes_table.py, retrieved_table.py    who changed what; what runs were told and what they added
amendments.py, amend_dialogs.py         what a person may change, as revisions; the dialogs that ask for it
exchange_panel.py                       all of it as one file, to take along and to bring in
"""
