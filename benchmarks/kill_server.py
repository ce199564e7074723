"""Kill the dashboard's server with SIGKILL while a run is written, again and again; compare its index with a new one.

python -m benchmarks.kill_server --kills 5
python -m benchmarks.kill_server --kills 1 --depths 3 --seconds 2      smallest

The run is a replay: an engine process of its own that writes the events of a sample run in their rhythm.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from pathlib import Path

from benchmarks.kill_engine import ended
from engine import supervisor
from storage.index.database import index_file, open_database
from storage.index.ingest import Ingest
from tests import samples
from tests.browser.conftest import new_home, start_server
from tests.storage.index_dump import dump, rebuilt


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--depths", type=int, default=40, help="depths of the run (40)")
    parser.add_argument("--seconds", type=float, default=30, help="how long it is written (30)")
    options = parser.parse_args()
    home = new_home(Path(tempfile.mkdtemp()) / "home")
    os.environ["TILEWRIGHT_HOME"] = str(home)
    dice = random.Random(1)
    samples.write_run(home / "runs", "original", depths=options.depths)
    folder = supervisor.start_replay("original", None, options.seconds)
    alive = 0
    for _ in range(options.kills):
        server = start_server(home)
        time.sleep(dice.uniform(0.2, 1.2) * options.seconds / options.kills)
        server.process.kill()
        server.process.wait()
        alive += supervisor.is_alive(folder) or ended(folder)
    while not ended(folder):
        time.sleep(0.1)
    with open_database(index_file(home)) as database:
        Ingest(database, home / "runs").catch_up()
        kept, set_aside = dump(database), database.set_aside
    fresh = new_home(Path(tempfile.mkdtemp()) / "home")
    anew = rebuilt(fresh, home / "runs")
    rows = sum(map(len, kept.values()))
    print(f"server killed {options.kills} times; engine lived on each time: {alive == options.kills}")
    print(f"index survived the kills: {set_aside is None}; {rows} rows in {len(kept)} tables")
    print(f"equal row for row to one made from nothing: {kept == anew}")
    raise SystemExit(0 if kept == anew and alive == options.kills else 1)


if __name__ == "__main__":
    main()
