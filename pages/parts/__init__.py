"""What pages are made of, in folders named by screen. A module draws one thing or turns rows into what is drawn;
none holds SQL. Beside the folders lie the open index and what every screen reads from it, words and figures for people,
who may look, and what runs in the browser.

    widgets/, status/, steering/         what every screen is drawn with, says of a run, and does to it
    overview/, run/, kernel/, compare/   the screens
    system/, report/, api/               this machine, a file to pass on, routes
"""
