"""On which lines of a candidate's file the samples of perf fell, by the line tables of its libraries. A line has the
time of its own instructions and of what was inlined into it, not that of functions which it calls."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from engine.evaluator.build.request import CANDIDATE_FILE

LIMIT_S = 30.0
MOST_BYTES = 256 << 20  # of a library: one of a kernel has some MB
NAME_LENGTH = 200
_MAPPED = re.compile(r"PERF_RECORD_MMAP2? .*\[0x([0-9a-f]+)\(0x([0-9a-f]+)\) @ (\w+) .*\]: \S+ (/.+)$")
_SAMPLE = re.compile(r"^\s*([0-9a-f]+)\b")
_PLACE = re.compile(rf"^(?:.*/)?{re.escape(CANDIDATE_FILE)}:(\d+)")


def of(script: str, libraries: Mapping[str, str]) -> tuple[list[tuple[str, int, int]], int]:
    """(function, line, samples) of the libraries' lines, most samples first, and how many samples there are in all.

    `script` is what `perf script` prints of addresses and mappings; `libraries` are files by where they were loaded
    from. An instruction that was inlined counts for each line of the candidate's file that it came from.
    """
    mapped, samples = [], Counter[int]()
    for text in script.splitlines():
        if mapping := _MAPPED.search(text):
            mapped.append((int(mapping[1], 16), int(mapping[2], 16), int(mapping[3], 16), mapping[4]))
        elif address := _SAMPLE.match(text):
            samples[int(address[1], 16)] += 1
    lines = Counter[tuple[str, int]]()
    for loaded, library in libraries.items():
        counts = Counter[int]()
        for start, size, offset, path in mapped:
            if path == loaded:
                counts.update({at - start + offset: n for at, n in samples.items() if start <= at < start + size})
        if counts:
            lines.update(_of_library(library, counts))
    return [(function, line, count) for (function, line), count in lines.most_common()], samples.total()


def _of_library(library: str, counts: Counter[int]) -> Counter[tuple[str, int]]:
    """Samples by function and line, from those by offset in the library's file."""
    by_address = Counter[int]()
    for offset, count in counts.items():
        for address in _loaded_at(library, offset):
            by_address[address] += count
    lines = Counter[tuple[str, int]]()
    for address, function, numbers in _places(library, sorted(by_address)):
        for number in numbers:
            lines[function[:NAME_LENGTH], number] += by_address[address]
    return lines


def _loaded_at(library: str, offset: int) -> Iterator[int]:
    """The address that a byte of a library's file is linked for; none where it is not loaded."""
    try:
        with Path(library).open("rb") as file:
            for segment in ELFFile(file).iter_segments("PT_LOAD"):
                if 0 <= offset - segment["p_offset"] < segment["p_filesz"]:
                    yield offset - segment["p_offset"] + segment["p_vaddr"]
                    return
    except (OSError, ELFError):
        return


def _places(library: str, addresses: Sequence[int]) -> Iterator[tuple[int, str, set[int]]]:
    """Each address with the function that it is in and the lines of the candidate's file that it came from."""
    texts = "\n".join(map(hex, addresses))
    try:
        if Path(library).stat().st_size > MOST_BYTES:
            return
        done = subprocess.run(["addr2line", "-a", "-f", "-i", "-C", "-e", library], input=texts, capture_output=True,
                              text=True, timeout=LIMIT_S, check=False)  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return
    for part in re.split(r"^0x", done.stdout, flags=re.MULTILINE)[1:]:
        address, *frames = part.splitlines()
        numbers = {int(place[1]) for frame in frames[1::2] if (place := _PLACE.match(frame))}
        yield int(address, 16), frames[-2] if len(frames) > 1 else "", numbers - {0}
