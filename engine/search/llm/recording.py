"""Recorded replies on disk: JSON Lines, one header, then one reply a line. Knows the format, not who replays it."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.errors import ModelError
from storage import untrusted
from storage.run.blobs import text_hash
from storage.untrusted import Limits, UntrustedError

FORMAT = 1
LIMITS = Limits(most_bytes=256 << 20)
LANGUAGE = "cute"  # of recordings that name none
SHIPPED = Path(__file__).resolve().parent.parent.parent.parent / "tasks" / "recordings"


@dataclass(frozen=True, slots=True)
class Line:
    """One reply. `source` is the hash of the kernel the call was about; `depth` None where the recording does not say.

    `verdict` is how that kernel had been judged when the call was made, empty where it is not known.
    """

    role: str
    source: str | None
    reply: str
    depth: int | None = None
    finish: str = "stop"
    verdict: str = ""


@dataclass(frozen=True, slots=True)
class Recording:
    """Replies by (role, hash of the kernel the call was about), in the order in which they were given."""

    path: Path
    header: Mapping[str, Any]
    lines: tuple[Line, ...] = ()
    replies: Mapping[tuple[str, str | None], tuple[str, ...]] = field(default_factory=dict)

    @property
    def verdicts(self) -> Mapping[str, str]:
        """How the kernels had been judged, by hash, as far as the recording says."""
        return {line.source: line.verdict for line in self.lines if line.source and line.verdict}

    def lines_for(self, role: str, source: str | None) -> tuple[Line, ...]:
        """The lines of one role about one kernel."""
        return tuple(line for line in self.lines if (line.role, line.source) == (role, source))

    def spare(self, role: str, depth: int, given: frozenset[str]) -> Line | None:
        """The first reply of a role at a depth that is not among those given (hashes of texts)."""
        fitting = (line for line in self.lines if (line.role, line.depth) == (role, depth))
        return next((line for line in fitting if text_hash(line.reply) not in given), None)


def shipped_recording(
    task_name: str, toolchain: str = "cpu", strategy: str = "cutegen", language: str = LANGUAGE
) -> Path | None:
    """The recording that comes with Tilewright for a task: `swish.jsonl` for the host, `swish.cuda.jsonl` for a GPU,
    `swish.coder_judge.jsonl` for another strategy, `swish.cuda.in_cuda.jsonl` for another language."""
    path = SHIPPED / f"{task_name}{_ending(toolchain, strategy, language)}"
    return path if path.exists() else None


def recorded_tasks(toolchain: str, strategy: str, language: str = LANGUAGE) -> list[str]:
    """The tasks with a shipped recording of this kind."""
    ending = _ending(toolchain, strategy, language)
    names = (path.name for path in SHIPPED.glob(f"*{ending}"))
    return sorted(name.removesuffix(ending) for name in names if "." not in name.removesuffix(ending))


@functools.lru_cache(maxsize=64)
def recorded_settings(path: Path) -> Mapping[str, Any]:
    """The settings that a recording was made with: sizes, depths, options of the strategy; empty when it has none.

    Raises:
        ModelError: as `read_recording`.
    """
    settings = read_recording(path).header.get("settings")
    return settings if isinstance(settings, dict) else {}


def calls_of_first_run(path: Path, depths: int) -> int:
    """How many replies of a recording a run of so many depths takes that goes as the recorded one went: those up to the
    first that steps back, with which the replies for runs that went otherwise begin.

    Raises:
        ModelError: as `read_recording`.
    """
    count = reached = 0
    for line in read_recording(path).lines:
        depth = reached if line.depth is None else line.depth
        if depth < reached or depth > depths:
            break
        count, reached = count + 1, depth
    return count


def recorded_strategy(path: Path) -> str:
    """The search method that a recording was made with.

    Raises:
        ModelError: as `read_recording`.
    """
    return str(recorded_settings(path).get("strategy", "cutegen"))


def recorded_language(path: Path) -> str:
    """The language that a recording's kernels are written in.

    Raises:
        ModelError: as `read_recording`.
    """
    return str(recorded_settings(path).get("language", LANGUAGE))


def _ending(toolchain: str, strategy: str, language: str) -> str:
    parts = [
        toolchain if toolchain != "cpu" else "",
        strategy if strategy != "cutegen" else "",
        f"in_{language}" if language != LANGUAGE else "",
    ]
    return "".join(f".{part}" for part in parts if part) + ".jsonl"


def read_recording(path: Path) -> Recording:
    """Read a recording.

    Raises:
        ModelError: missing, of another format, or a damaged line (with its number).
    """
    try:
        texts = untrusted.read_text(path, LIMITS).split("\n")
        header = untrusted.json_value(texts[0], f"line 1 of {path}", LIMITS)
    except (FileNotFoundError, UntrustedError) as error:
        raise ModelError(f"cannot read recording {path}: {error}") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ModelError(f"{path} is not a recording of format {FORMAT}: its first line must name the format")
    lines = tuple(_line(path, number, text) for number, text in enumerate(texts[1:], 2) if text.strip())
    replies: dict[tuple[str, str | None], tuple[str, ...]] = {}
    for line in lines:
        replies[line.role, line.source] = (*replies.get((line.role, line.source), ()), line.reply)
    return Recording(path, header, lines, replies)


def write_recording(header: Mapping[str, Any], lines: list[Line]) -> str:
    """The text of a recording; what a line does not know is left out."""
    plain: list[Mapping[str, Any]] = [{"format": FORMAT} | dict(header)]
    for line in lines:
        optional = {
            "depth": line.depth,
            "finish": "" if line.finish == "stop" else line.finish,
            "verdict": line.verdict,
        }
        fields = {name: value for name, value in optional.items() if value not in (None, "")}
        plain.append({"role": str(line.role), "source": line.source} | fields | {"reply": line.reply})
    return "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in plain)


def _line(path: Path, number: int, text: str) -> Line:
    try:
        fields = untrusted.json_value(text, "it", LIMITS)
        depth = None if fields.get("depth") is None else int(fields["depth"])
        finish, verdict = str(fields.get("finish") or "stop"), str(fields.get("verdict") or "")
        return Line(str(fields["role"]), fields["source"], str(fields["reply"]), depth, finish, verdict)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ModelError(f"{path}, line {number}: not a recorded reply ({error!r})") from error
