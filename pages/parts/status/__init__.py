"""What is said of a run wherever it is shown.

now.py, pinned_snapshot.py   what its engine does this second, and the watcher of a page; a page held still
step_sentences.py            what a step does, or what came of it, as a sentence
alerts.py, damaged.py        what needs a person; what its folder has lost
outcome.py                   what a run has come to, in figures; where its time went
curve_notes.py               what qualifies a run's curve, in sentences
waiting_strip.py             who waited for what: lanes over time, and a sentence
measured_on.py               shapes, number format and device of its figures
beside_base.py               whether a kernel is faster or slower than the one it was made from
alternatives.py              what a user would run instead of a kernel, and how the kernel stands against it
no_kernel.py                 that no reply of its model held a kernel, and what it said instead
settings_list.py             what it was started with, its strategy with every option
notices.py                   what people are told who do not look: desktop notifications, a webhook
behind.py                    that the index does not follow the run folders
unshown.py                   why a model saw no profile where it was to see one
undrawn.py                   that a page, or a part of one, cannot be drawn
away.py, menu.py             that the server does not answer; the menu of a narrow screen
presenting.py                a page for an audience: large type, no menus
welcome.py                   the first visit: what there is to see, what to do next
tab_title.py                 what a browser's tab says
provenance.py, address.py    a fork or a replay of which run; the browser's address, also one that leads nowhere
"""
