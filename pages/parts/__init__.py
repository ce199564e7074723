"""What screens are made of, in folders named by screen. A module draws one thing or turns rows into what is drawn; none
holds SQL. A folder imports only those above it in this list; `tests/test_layers.py` says which.

    wording.py, speed_of_light.py             numbers, times and states as people read them; the hardware's limit
    index.py, run_state.py, change_token.py   the open index; whether an engine works on a run; what a page would show
    run_settings.py, suite_folders.py, network_folders.py   what a run began with; suites, networks as their folders say
    method.py, pass_rates.py, server_memory.py   words of a run's method; kernels that pass; this server's memory
    number_field.py                           a field for a number that tells what is not valid
    timed_anew.py, preparing.py               why latencies and speed-ups can disagree; what is done before a first step
    texts.py, access.py                       long texts by their hash; who may look and whether anybody may steer
    streamlit_internals.py                    what is used of Streamlit beyond its documented interface
    client/    what runs in the browser
    widgets/   what every screen is drawn with; knows no run
    status/    what is said of a run wherever it is shown
    steering/  what a person does to a run
    kernel/, compare/                         one kernel; several runs side by side
    benchmark/ what suites say
    report/    a run or a comparison as one file
    film/      a finished run as a film, for a first visit
    run/, overview/, models/, system/         one run; all runs; what models predict; this machine
    knowledge/ what runs have learned, and what a person changes of it
    network/   a network by place and by region
    api/       routes
"""
