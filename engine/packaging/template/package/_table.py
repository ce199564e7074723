"""Which kernels this package has. Written when the package was made."""

from __future__ import annotations

from ._entries import Entry, Region

PACKAGE = "tilewright_package"
SINGLE_CHILD: dict[str, str] = {}
"""By reference: the one submodule that does all the work, whose own class `apply` looks for too."""
ENTRIES: tuple[Entry, ...] = ()
REGIONS: tuple[Region, ...] = ()
"""Of a package for one network: its regions."""
