"""From a model's raw reply to a new source, or to a report the model can act on. Knows no model and no run.

proposed_patch.py           the entry: what a reply offers, put into a source
reply.py, edit_blocks.py    finding and reading edits
whole_file.py               finding the file that is a kernel
search_replace.py           SEARCH/REPLACE blocks, put into a source
prediction.py               the gain that a reply expects
json_values.py              JSON amid other text
edits.py                    applying them, all or nothing
"""
