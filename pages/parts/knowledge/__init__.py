"""What the pages of the knowledge base are made of.

known_tables.py, evidence_table.py      states and techniques with their figures; every attempt, and its prediction
technique_story.py, state_story.py      one technique; one state
failure_rules.py                        failures that recur, and what is told of them
technique_graph.py                      states and techniques as a picture
learning_table.py                       what runs were told, what they tried then, what they added
changes_table.py, amend_dialogs.py      who changed what; the dialogs in which a person changes it
amendments.py, exchange_panel.py        what is wrong with a change, and writing it; all of it as one file
"""
