"""Any program as the language model: the prompt on its standard input or in a file, the reply on its standard output.
Knows how it is asked and heard, not what stands around it: the words before its command, which start it, are handed in.
"""

from __future__ import annotations

import codecs
import json
import os
import re
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path

from engine.errors import CallError
from engine.search.llm import Completion, Message, OnText, Purpose, Terms
from engine.search.llm.output import Found, PlainText, read_output
from engine.search.llm.prices import Price
from engine.search.llm.protocols import LONGEST, Scrubber
from storage.run.models import CallFailure, TokenUsage
from storage.run.saved_models import SavedModel

ROOT = Path(__file__).resolve().parents[3]
TIMEOUT_S = 1800.0
TICK_S = 0.1
END_S = 6.0  # of what stands around the program, which gives the program two to end by itself
WINDOW, REPLY_ROOM = 128_000, 32_000
MOST_BYTES = 16_000_000
KEPT_ERRORS, SHOWN_LINES, SHOWN = 65_536, 5, 400
HEADINGS = {"system": "Instructions", "user": "Request", "assistant": "Your earlier reply"}
OURS = "TILEWRIGHT_"
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD", re.IGNORECASE)
_SECRET_TEXT = re.compile(r"\b(?:sk|pk|ghp|gsk|xox[a-z]|AIza)[-_A-Za-z0-9]{16,}")
Around = Callable[[int, Path], list[str]]
"""The words before a program's command, from an open pipe that hears why it could not be started, and its folder."""
Beside = tuple[int, Callable[[selectors.BaseSelector], None]]
"""An open file that is listened to beside the program, and what reads it then."""


class CommandModel:
    """Starts the program once per call and waits for its end; nothing of it lives on."""

    def __init__(
        self, saved: SavedModel, around: Around, withheld: Collection[str], price: Price | None = None,
        timeout_s: float | None = None,
    ) -> None:  # fmt: skip
        """`withheld` are environment variables that it does not get; `timeout_s` takes the place of the entry's own."""
        assert saved.program is not None
        self.name, self._program = saved.name, saved.program
        self._around, self._withheld, self._price = around, withheld, price or Price()
        self._timeout_s = timeout_s or saved.program.timeout_s or TIMEOUT_S

    def terms(self, purpose: Purpose) -> Terms:
        """What a call costs by the table of prices, and how much fits into it. It has no output limit to be raised."""
        price = self._price
        window = self._program.window or price.window or WINDOW
        return Terms(
            model=self.name,
            window=window,
            reply_room=min(price.max_output or REPLY_ROOM, window // 2),
            input_price=None if price.input is None else price.input / 1e6,
            output_price=None if price.output is None else price.output / 1e6,
        )

    def complete(self, messages: list[Message], purpose: Purpose, on_text: OnText) -> Completion:
        """What the program prints.

        Raises:
            CallError: it cannot be started, takes too long, fails, prints without end, or nothing that is a reply.
        """
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="tilewright.model.", ignore_cleanup_errors=True) as folder:
            place = Path(folder)
            (place / "prompt.md").write_text(as_prompt(messages), encoding="utf-8", errors="replace")
            heard = on_text if not self._program.reply else only_waits(on_text)
            call = Call(place, place / "prompt.md", secrets(), heard, self._timeout_s)
            call.run(self._command(place, messages), self._around, self._environment())
        found = read_output(self._program, call.text, call.errors)
        self._see_that_it_ended_well(found, call)
        self._see_that_it_replied(found, call)
        if self._program.reply:
            on_text(found.reply)
        return self._completion(found, found.reply, time.monotonic() - began)

    def _command(self, folder: Path, messages: Sequence[Message]) -> list[str]:
        """The command, with the prompt's messages in a file beside it."""
        plain = [{"role": message.role, "text": message.text} for message in messages]
        (folder / "messages.json").write_text(json.dumps(plain), encoding="utf-8")
        names = {"{prompt_file}": f"{folder / 'prompt.md'}", "{messages_file}": f"{folder / 'messages.json'}"}
        words = []
        for word in self._program.command:
            for name, path in names.items():
                word = word.replace(name, path)
            words.append(word)
        return words

    def _environment(self) -> dict[str, str]:
        return {
            name: value for name, value in os.environ.items()
            if name not in self._withheld and not name.startswith(OURS)
        }  # fmt: skip

    def _see_that_it_ended_well(self, found: Found, call: Call) -> None:
        if call.code:
            message = f"{self.name} ended with {_code(call.code)}: {call.last_words() or '(no words)'}"
            raise CallError(CallFailure.SERVER_ERROR, message, is_charged=True, text=call.text, usage=_usage(found))

    def _see_that_it_replied(self, found: Found, call: Call) -> None:
        if not found.is_there:
            message = f"{self.name} printed nothing that its reply ({self._program.reply}) could be read from"
            raise CallError(CallFailure.MALFORMED, message, is_charged=True, text=call.text, usage=_usage(found))
        if not found.reply.strip():
            words = f": {call.last_words()}" if call.last_words() else ""
            raise CallError(
                CallFailure.EMPTY, f"{self.name} printed an empty reply{words}", is_charged=True, usage=_usage(found)
            )

    def _completion(self, found: Found, text: str, seconds: float) -> Completion:
        cost = found.cost_usd
        if cost is None and not self._program.cost_usd:
            cost = self._price.cost(TokenUsage(found.input_tokens, found.output_tokens))
        return Completion(text, self.name, "stop", seconds, found.input_tokens, found.output_tokens, None, None, cost)


def secrets() -> Scrubber:
    """Takes what the environment's names call secret out of what a program says."""
    return Scrubber(value for name, value in os.environ.items() if _SECRET_NAME.search(name))


class Call:
    """One call of a program: its process, and what has come of it."""

    def __init__(self, folder: Path, asked: Path, scrubber: Scrubber, on_text: OnText, limit_s: float) -> None:
        """`asked` is the file on its standard input."""
        self._folder, self._asked, self._scrubber, self._on_text = folder, asked, scrubber, on_text
        self._limit_s, self.deadline = limit_s, time.monotonic() + limit_s
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._plain = PlainText()
        self._pieces: list[str] = []
        self._errors = b""
        self._bytes = self._length = 0
        self.code = 0

    @property
    def text(self) -> str:
        """What it has printed, without escapes of a terminal and without secrets."""
        return "".join(self._pieces)

    @property
    def errors(self) -> str:
        """What it has last said on standard error."""
        return self._scrubber.whole(PlainText.whole(self._errors.decode("utf-8", "replace")))

    def run(
        self, command: list[str], around: Around, environment: dict[str, str], beside: Iterable[Beside] = ()
    ) -> None:
        """Start it and hear it to its end, and what else is to be heard; what that or `on_text` raises ends it."""
        hears, failed = os.pipe()
        try:
            with open(self._asked, "rb") as prompt:
                process = subprocess.Popen(
                    [*around(failed, self._folder), *command], stdin=prompt, stdout=subprocess.PIPE, bufsize=0,
                    stderr=subprocess.PIPE, cwd=ROOT, env=environment, pass_fds=[failed], start_new_session=True,
                )  # fmt: skip
            os.close(failed)
            failed = -1
            with process:
                try:
                    self._hear(process, beside)
                finally:
                    _end(process)
            self.code = process.returncode
            if why := os.read(hears, 4096).decode(errors="replace"):
                message = f"{command[0]} could not be started: {why}. Correct its command"
                raise CallError(CallFailure.REJECTED, message, is_lasting=True)
        finally:
            os.close(hears)
            if failed >= 0:
                os.close(failed)

    def _hear(self, process: subprocess.Popen[bytes], beside: Iterable[Beside]) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        with selectors.DefaultSelector() as streams:
            for stream in (process.stdout, process.stderr):
                streams.register(stream, selectors.EVENT_READ)
            for file, read in beside:
                streams.register(file, selectors.EVENT_READ, read)
            while process.poll() is None or not all(key.data for key in streams.get_map().values()):
                self._wait()
                for key, _ in streams.select(TICK_S):
                    if key.data is not None:
                        key.data(streams)
                        continue
                    piece = os.read(key.fd, 1 << 16)
                    if not piece:
                        streams.unregister(key.fileobj)
                    elif key.fileobj is process.stdout:
                        self._take(piece)
                    else:
                        self._errors = (self._errors + piece)[-KEPT_ERRORS:]
        self._add(self._decoder.decode(b"", final=True), is_last=True)

    def _wait(self) -> None:
        self._on_text("")
        if time.monotonic() > self.deadline:
            words = f": {self.last_words()}" if self.last_words() else ""
            message = f"the program did not end within {self._limit_s:g} seconds{words}"
            raise CallError(CallFailure.TIMED_OUT, message, is_charged=True, text=self.text)

    def _take(self, piece: bytes) -> None:
        self._bytes += len(piece)
        self._add(self._decoder.decode(piece))
        if self._bytes > MOST_BYTES or self._length > LONGEST:
            message = f"the call was cancelled: the program printed more than {LONGEST:,} characters"
            raise CallError(CallFailure.ENDLESS, message, is_charged=True, text=self.text)

    def _add(self, text: str, *, is_last: bool = False) -> None:
        piece = self._scrubber.feed(self._plain.feed(text))
        if is_last:
            piece += self._scrubber.feed(self._plain.rest()) + self._scrubber.rest()
        if piece:
            self._pieces.append(piece)
            self._length += len(piece)
            self._on_text(piece)

    def last_words(self) -> str:
        """The last lines of its standard error, in one, without what looks like a key."""
        lines = [line.strip() for line in self.errors.splitlines() if line.strip()][-SHOWN_LINES:]
        return _SECRET_TEXT.sub("[secret]", " / ".join(lines))[-SHOWN:]


def as_prompt(messages: Sequence[Message]) -> str:
    """A conversation as one text, a heading for each message."""
    return "\n\n".join(f"# {HEADINGS.get(message.role, message.role)}\n\n{message.text}" for message in messages) + "\n"


def only_waits(on_text: OnText) -> OnText:
    """For output that is not yet the reply: the caller hears that there is something to wait for."""
    return lambda piece: on_text("")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the program and all it has started, whatever it does."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()


def _code(code: int) -> str:
    """How it ended: the shell's way to tell a signal is said as one."""
    number = code - 128
    if number in set(signal.Signals):
        return f"the signal {signal.Signals(number).name}"
    return f"exit code {code}"


def _usage(found: Found) -> TokenUsage | None:
    """What the program told of a call that failed; None where it told nothing, so that it is estimated."""
    if found.input_tokens is None and found.output_tokens is None:
        return None
    return TokenUsage(found.input_tokens, found.output_tokens)
