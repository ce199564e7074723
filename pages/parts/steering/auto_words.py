"""What the switches of profiling mean on auto, in words. Pure."""

from __future__ import annotations

from storage.records import Switch


def auto(first: int, depths: int, collect: Switch = Switch.AUTO, shown: Switch = Switch.AUTO) -> str:
    """When profiles are collected and shown on auto; `first` is the first depth whose prompt carries one.

    A switch that is not on auto is not spoken of; empty where neither is.
    """
    parts = [_collected(first, depths)] if collect is Switch.AUTO else []
    parts += [_shown(first, depths)] if shown is Switch.AUTO else []
    return f"auto: {', '.join(parts)}" if parts else ""


def _collected(first: int, depths: int) -> str:
    """As the engine does: the starting point, and every kernel from the depth before the first that sees one."""
    if first <= 2:  # every depth from 0 on
        return "collected at every depth"
    return "collected at depth 0" if first - 1 > depths else f"collected at depth 0 and from depth {first - 1}"


def _shown(first: int, depths: int) -> str:
    return "never shown in this run" if first > depths else f"shown from depth {max(1, first)}"
