"""An address under which there is no page: what was asked for, and the way back."""

from __future__ import annotations

from pages.parts.status import address

address.draw_unknown_page()
