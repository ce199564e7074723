"""How long prompts get: the longest of each step in tokens, and the longest of all by section, as tables and a picture.

    python -m benchmarks.prompt_sizes [--picture docs/prompt-sizes.svg] [--class matmul] [--method cutegen]

The prompts are those of `tests/engine/every_prompt.py`: made-up runs of every method, class, toolchain and architecture
with the longest recorded kernel and compiler reports, diagnoses and histories about as long as they get. Tokens are
characters by three, as the engine counts them until an endpoint has counted.
"""

from __future__ import annotations

import argparse
import html
import itertools
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.search.methods import catalogue
from storage.results.vocabulary import KernelClass
from storage.run.models import CHARACTERS_PER_TOKEN
from tests.engine.every_prompt import OF_THE_RUN, Asked, every_prompt

ROW, LEFT, WIDTH, BARS = 24, 250, 860, 440
OURS, OTHERS = "#7b3fa0", "#c7821e"


@dataclass(frozen=True, slots=True)
class Part:
    """A section of the prompt, and whether its text is the run's own; otherwise it is that of the prompt files."""

    role: str
    name: str
    tokens: int
    is_of_the_run: bool


def main() -> None:
    """Print both tables; with `--picture` draw the second."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--picture", type=Path, help="where to write the picture of the longest first prompt, an SVG")
    parser.add_argument("--class", dest="kernel_class", choices=list(KernelClass), help="this kernel class alone")
    parser.add_argument("--method", choices=catalogue.names(), help="this method alone")
    options = parser.parse_args()
    methods = [options.method] if options.method else catalogue.names()
    classes = [KernelClass(options.kernel_class)] if options.kernel_class else list(KernelClass)
    with tempfile.TemporaryDirectory() as folder:
        pairs = itertools.product(methods, classes)
        found = [one for name, kind in pairs for one in every_prompt(Path(folder), name, kind)]
    print("\n".join(steps_table(found)), end="\n\n")
    longest = max((one for one in found if ", again" not in one.step), key=lambda one: one.size)
    parts = list(parts_of(longest))
    print(title(longest), end="\n\n")
    print("\n".join(parts_table(parts)))
    if options.picture:
        options.picture.write_text(picture(title(longest), parts), encoding="utf-8")


def steps_table(found: Sequence[Asked]) -> Iterator[str]:
    """The longest prompt of each step, as a Markdown table."""
    longest: dict[tuple[str, str], Asked] = {}
    for one in found:
        place = (one.strategy, one.step)
        if place not in longest or one.size > longest[place].size:
            longest[place] = one
    yield "| method | step | tokens of the longest | of them from prompt files |"
    yield "|---|---|---|---|"
    for (strategy, step), one in longest.items():
        own = sum(part.tokens for part in parts_of(one) if not part.is_of_the_run)
        yield f"| {strategy} | {step} | {tokens(one.size):,} | {own:,} |"


def parts_table(parts: Sequence[Part]) -> Iterator[str]:
    """The sections of a prompt in their order, as a Markdown table."""
    whole = sum(part.tokens for part in parts)
    yield "| message | section | tokens | share |"
    yield "|---|---|---|---|"
    for part in parts:
        yield f"| {part.role} | {part.name} | {part.tokens:,} | {part.tokens / whole:.0%} |"


def parts_of(one: Asked) -> Iterator[Part]:
    """The sections of a prompt in their order."""
    for role, name, text in one.sections:
        yield Part(role, name, tokens(len(text)), name in OF_THE_RUN)


def tokens(characters: int) -> int:
    """As the engine estimates them."""
    return round(characters / CHARACTERS_PER_TOKEN)


def title(one: Asked) -> str:
    """Which prompt it is."""
    device = f", {one.architecture}" if one.architecture else ""
    return (
        f"The longest first prompt: {one.step} of {one.strategy}, class {one.kernel_class}, toolchain {one.toolchain}"
        f"{device}, about {tokens(one.size):,} tokens"
    )


def picture(name: str, parts: Sequence[Part]) -> str:
    """A bar for each section, in order, as an SVG."""
    most, height = max(part.tokens for part in parts), ROW * (len(parts) + 3) + 12
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        'font-family="sans-serif" font-size="13">',
        f"<title>{html.escape(name)}</title>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f'<text x="12" y="24" font-weight="bold">{html.escape(name)}</text>',
    ]
    for place, (label, colour) in enumerate((("text of prompt files", OURS), ("text of the run", OTHERS))):
        x = 12 + 190 * place
        lines.append(f'<rect x="{x}" y="38" width="12" height="12" fill="{colour}"/>')
        lines.append(f'<text x="{x + 18}" y="49">{label}</text>')
    for place, part in enumerate(parts):
        y, wide = ROW * (place + 3), max(2, round(BARS * part.tokens / most))
        label = f"{part.role}: {part.name}"
        colour = OTHERS if part.is_of_the_run else OURS
        lines.append(f'<text x="{LEFT - 10}" y="{y + 13}" text-anchor="end">{html.escape(label)}</text>')
        lines.append(f'<rect x="{LEFT}" y="{y}" width="{wide}" height="16" rx="2" fill="{colour}"/>')
        lines.append(f'<text x="{LEFT + wide + 8}" y="{y + 13}">{part.tokens:,}</text>')
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    main()
