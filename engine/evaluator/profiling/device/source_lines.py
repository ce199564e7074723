"""Where in the source a kernel's time went: Nsight Compute's page of source lines with their instructions.

A warp that does not issue is sampled with its reason, so a line's share of the samples is its share of the waiting and
the issuing. An instruction that was inlined may stand under several lines; the total counts each once.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from engine.evaluator.build.request import CANDIDATE_FILE
from storage.results.profile_results import SourceLine

MOST_LINES = 200  # of headers: of the kernel's own source every line with samples is kept
MOST_INSTRUCTIONS = 20_000
MOST_LAUNCHES = 8  # of more launches only the longest is read: printing one can take seconds
TEXT_LENGTH, NAME_LENGTH = 160, 600
SAMPLES, LINE, ADDRESS, SOURCE = "# Samples", "Line No", "Address", "Source"
_STALL, _NOT_ISSUED = "stall_", "(Not Issued)"
UNREADABLE = "<"  # the profiler's word in place of a text that it cannot find
# The page's short names for what the counters of the whole launch call in full.
REASONS: Mapping[str, str] = {
    "long_sb": "long_scoreboard", "short_sb": "short_scoreboard", "mio": "mio_throttle", "lg": "lg_throttle",
    "math": "math_pipe_throttle", "tex": "tex_throttle", "no_inst": "no_instruction", "dispatch": "dispatch_stall",
    "imc": "imc_miss", "sleep": "sleeping",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sampled:
    """The lines with samples, most first, the samples of the call, and the instructions as a text. `of` says of which
    launch they are, empty for all."""

    lines: Sequence[SourceLine]
    samples: int
    sass: str
    of: str = ""


@dataclass(slots=True)
class _Place:
    """Samples of one line or one instruction, and their reasons."""

    text: str
    line: int | None = None
    samples: int = 0
    stalls: dict[str, int] = field(default_factory=dict)

    def add(self, samples: int, stalls: Mapping[str, int]) -> None:
        self.samples += samples
        for reason, count in stalls.items():
            self.stalls[reason] = self.stalls.get(reason, 0) + count

    @property
    def top(self) -> tuple[str, int]:
        """What most samples waited for; of what was only issued that it was."""
        waits = {reason: count for reason, count in self.stalls.items() if reason != "selected" and count}
        counts = waits or {reason: count for reason, count in self.stalls.items() if count}
        return max(counts.items(), key=lambda item: item[1]) if counts else ("", 0)


def print_command(ncu: str, report: str, longest: int | None) -> list[str]:
    """Print every source line with its instructions as CSV; `longest`: of this launch only."""
    only = [] if longest is None else ["--launch-skip", str(longest), "--launch-count", "1"]
    return [ncu, "--import", report, "--page", "source", "--print-source", "cuda,sass", "--csv", *only]


def read(text: str) -> Sampled | None:
    """The page as printed; None where it holds no sample or is not laid out as known."""
    lines: dict[tuple[str, str, int], _Place] = {}
    instructions: dict[tuple[str, int, str], _Place] = {}
    try:
        for row in _rows(text):
            if row.line is not None:
                place = lines.setdefault((row.kernel, row.file, row.line), _Place(row.text))
                place.add(row.samples, row.stalls)
            elif (key := (row.kernel, row.launch, row.address)) not in instructions:
                instructions[key] = _Place(row.text, row.under)
                instructions[key].add(row.samples, row.stalls)
            elif instructions[key].line is None:
                instructions[key].line = row.under
    except (csv.Error, ValueError, IndexError):
        return None
    total = sum(place.samples for place in instructions.values())
    if not total:
        return None
    hot = sorted(lines.items(), key=lambda item: -item[1].samples)
    ranked = [_line(*key, place) for key, place in hot if place.samples]
    headers = set([line for line in ranked if line.file][:MOST_LINES])
    shown = [line for line in ranked if not line.file or line in headers]
    return Sampled(shown, total, "\n".join(_listing(instructions)))


@dataclass(frozen=True, slots=True)
class _Row:
    """A line (with its number), or an instruction `under` a line of the candidate's own file."""

    kernel: str
    launch: int
    file: str
    line: int | None
    under: int | None
    address: str
    text: str
    samples: int
    stalls: Mapping[str, int]


def _rows(text: str) -> Iterator[_Row]:
    file = kernel = ""
    launch, under = 0, None
    seen: set[tuple[str, str]] = set()
    header: list[str] = []
    columns: dict[str, int] = {}
    stalls: list[tuple[int, str]] = []
    for row in csv.reader(line for line in text.splitlines() if not line.startswith("==")):
        if len(row) < 2:
            continue
        if row[:1] == ["File Path"]:
            file, header = row[1], []
        elif row[:1] == ["Function Name"]:
            kernel = row[1][:NAME_LENGTH]
            if (kernel, file) in seen:  # the files of a launch follow one another: one that comes again is the next's
                launch, seen = launch + 1, set()
            seen.add((kernel, file))
        elif row[:1] == [LINE] and {SAMPLES, ADDRESS} <= set(row):
            header, under = row, None
            columns = {name: i for i, name in reversed(list(enumerate(header)))}
            stalls = [(i, name) for i, name in enumerate(header) if name.startswith(_STALL) and _NOT_ISSUED not in name]
        elif header and len(row) == len(header):
            samples = _count(row[columns[SAMPLES]])
            why = {_reason(name): count for i, name in stalls if (count := _count(row[i]))}
            if row[0].isdigit():
                is_candidate = file.rsplit("/", 1)[-1] == CANDIDATE_FILE
                under = int(row[0]) if is_candidate else None
                text = "" if row[1].startswith(UNREADABLE) else row[1]
                yield _Row(
                    kernel, launch, "" if is_candidate else _short(file), int(row[0]), under, "", text, samples, why
                )
            elif row[columns[ADDRESS]].startswith("0x"):
                instruction = row[header.index(SOURCE, columns[ADDRESS])].strip()
                yield _Row(kernel, launch, "", None, under, row[columns[ADDRESS]], instruction, samples, why)


def _line(kernel: str, file: str, number: int, place: _Place) -> SourceLine:
    reason, count = place.top
    text = "" if not file else place.text.strip()[:TEXT_LENGTH]
    return SourceLine(kernel, file, number, place.samples, reason, count, text)


def _listing(instructions: Mapping[tuple[str, int, str], _Place]) -> Iterator[str]:
    """Instructions in the order of their addresses, launch by launch, with samples, reason and the candidate's line."""
    order = sorted(instructions, key=lambda key: (key[1], key[0], int(key[2], 16)))[:MOST_INSTRUCTIONS]
    above: tuple[str, int] | None = None
    start = 0
    for kernel, launch, address in order:
        if (kernel, launch) != above:
            above, start = (kernel, launch), int(address, 16)
            yield f"{kernel}\n {'offset':>7} {'samples':>8}  {'waits for':<20} {'line':>5}  instruction"
        place = instructions[kernel, launch, address]
        line = "" if place.line is None else place.line
        reason = place.top[0] if place.samples else ""
        yield f" {int(address, 16) - start:>7x} {place.samples or '':>8}  {reason:<20} {line:>5}  {place.text}"
    if left_out := len(instructions) - len(order):
        yield f"{left_out:,} more instructions are not listed."


def _reason(column: str) -> str:
    name = column.removeprefix(_STALL)
    return REASONS.get(name, name)


def _count(text: str) -> int:
    return int(float(text.replace(",", ""))) if text.strip() not in ("", "-", "n/a") else 0


def _short(path: str) -> str:
    """The end of a header's path, as an #include would name it."""
    return "/".join(path.split("/")[-3:])
