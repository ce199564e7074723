"""What cannot be done with a network that was captured elsewhere and opened here, each in a sentence that says what to
do. Knows no torch."""

from __future__ import annotations

import contextlib
from pathlib import Path

from engine.errors import EngineError
from storage.networks import files, in_network
from storage.networks.files import NetworkError
from storage.networks.records import Network

NO_PROOF = "kernels cannot be measured in it"
NO_SEARCH = "no kernels can be searched for it"
NO_LIMITS = "no limits can be measured for it"
INSTEAD = "Capture a network of your own: `python -m engine network capture app.py:make`"


def refuse(network: Network, what: str) -> None:
    """Keep what needs the network's program from one that was captured elsewhere: `what` cannot be done.

    Raises:
        EngineError: it was.
    """
    if network.is_example:
        why = f"network {network.name} is an example, {in_network.origin(network)}. Its program is not either"
        raise EngineError(f"{why}, so {what} here. {INSTEAD}")


def refuse_task(task: str) -> None:
    """Keep a run from the task of such a network's region: nothing is there that its kernels could be judged on.

    Raises:
        EngineError: it is one.
    """
    for folder, region in files.of_task(Path(task)):
        network = None
        with contextlib.suppress(NetworkError):
            network = files.read_network(folder)
        if network is not None and network.is_example:
            raise EngineError(
                f"{region} is a region of network {folder.name}, an example, {in_network.origin(network)}, so a run "
                "could not judge its kernels as they were judged there. Fork a kernel of one of its runs, or copy its "
                "task.py to a folder of your own and run that"
            )
