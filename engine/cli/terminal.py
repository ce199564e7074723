"""The one way to a person's terminal: nothing is shown that a terminal would obey, whoever wrote it. What a command
hands over byte for byte, such as a kernel's source in a pipe, goes to `sys.stdout.buffer`.
"""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator
from typing import Any, TextIO

import rich.console
from rich.console import ConsoleOptions, ConsoleRenderable, RenderableType, RenderHook, RenderResult
from rich.measure import Measurement
from rich.segment import Segment

WIDE = 400


def printable(text: str) -> str:
    """The text without what a terminal obeys: escape sequences, bells, carriage returns, turned writing."""
    return text if text.isprintable() else "".join(c if c.isprintable() or c in "\n\t" else "�" for c in text)


class Console(rich.console.Console):
    """Rich's, whose own colours reach the terminal and nobody else's."""

    def __init__(self, *, stderr: bool = False) -> None:
        stream = sys.stderr if stderr else sys.stdout
        super().__init__(file=stream.stream if isinstance(stream, PlainStream) else stream)
        self.push_render_hook(_OwnColoursOnly())


def widen(console: rich.console.Console, renderable: RenderableType) -> None:
    """Let lines be as long as the cells that are not to be cut need: a terminal wraps them, a pipe takes them."""
    wide = console.options.update(width=WIDE)
    console.width = max(console.width, console.measure(renderable, options=wide).minimum)


class _OwnColoursOnly(RenderHook):
    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """Each, with what it shows looked through."""
        return [_Plain(renderable) for renderable in renderables]


class _Plain:
    def __init__(self, inner: ConsoleRenderable) -> None:
        self._inner = inner

    def __rich_console__(self, console: rich.console.Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self._inner, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)

    def __rich_measure__(self, console: rich.console.Console, options: ConsoleOptions) -> Measurement:
        return Measurement.get(console, options, self._inner)


class PlainStream(io.TextIOBase):
    """A stream for people around another one; `buffer`, `fileno` and the like are the other one's."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write what is printable of it."""
        self.stream.write(printable(text))
        return len(text)

    def flush(self) -> None:
        """Flush the other stream."""
        self.stream.flush()

    def isatty(self) -> bool:
        """Whether the other stream is a terminal."""
        return self.stream.isatty()

    def fileno(self) -> int:
        """The other stream's file descriptor."""
        return self.stream.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The other stream's encoding."""
        return self.stream.encoding

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextlib.contextmanager
def plain_streams() -> Iterator[None]:
    """Within, `print` shows nothing that a terminal would obey."""
    out = contextlib.redirect_stdout(PlainStream(sys.stdout))
    with out, contextlib.redirect_stderr(PlainStream(sys.stderr)):
        yield
