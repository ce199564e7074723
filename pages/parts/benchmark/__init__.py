"""What the page of suites is made of. Figures and their texts are those of the exports (`engine.suites.tables`).

suites_list.py        suites that were started, and those that are shipped
suite_acts.py         start a shipped one; stop and continue one
suite_forecast.py     what all its runs will take, before it starts
suite_form.py         a new one: tasks, arms, limits
suite_draft.py        what the form has, as a TOML file
cells_matrix.py       every cell of a suite, live
chosen_runs.py        any runs summarised as if they were a suite
text_tables.py        a table of text, drawn
benchmark_charts.py   fast_p at every speed-up; the best kernel so far over model calls
"""
