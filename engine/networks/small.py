"""The network that comes with Tilewright, under tasks/networks, with recorded replies for its regions."""

from __future__ import annotations

from pathlib import Path

NAME = "small_decoder"
FOLDER = Path(__file__).resolve().parent.parent.parent / "tasks" / "networks" / NAME
ENTRY = f"{FOLDER / 'network.py'}:make"
