"""What a reply expects of its change: the technique's name and the gain over the base, as a factor. Knows text, not
kernels. Read leniently: what cannot be read is none, and no reply is refused for it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from engine.search.patching.reply import PREDICTED, answer_part, fences, read_object

LENGTH = 80  # characters of a technique's name
LEAST, MOST = 0.05, 100.0  # gains beyond them are slips of the pen
BARE_MOST = 10.0  # without a unit, a larger number may as well be per cent

_TECHNIQUE = re.compile(r"[\s>*#_\-\d.)]*technique(?: \([^)]{0,40}\))?[`*_\s]*[:=]+(.*)", re.IGNORECASE)
_GAIN = re.compile(r"\b(?:predicted|expected|estimated) (?:gain|speed-?\s?up)\b[^:=]{0,40}[:=]+(.*)", re.IGNORECASE)
_MARKS = " \t*_`\"'<>.;,|-–—"
_NOTHING = ("", "none", "n/a", "unknown")

_NUMBER = r"(\d{1,6}(?:[.,]\d{1,6})?)"
_RANGE = rf"(?:{_NUMBER}\s?[x×%]?\s?(?:-|–|—|to|\.\.\.?)\s?)?{_NUMBER}"
_FACTOR = re.compile(rf"(?<![\w.,]){_RANGE}\s?(?:(?:x\b|×)(?!\s?\d)|times\b|-?fold\b)|(?<!\w)[x×]\s?{_NUMBER}(?![\d%])")
_PERCENT = re.compile(rf"(?<![\w.,]){_RANGE}\s?(?:%|per ?cent\b)")
_BARE = re.compile(rf"[^\d]{{0,24}}?{_RANGE}\s*(?:$|[(,;.]\s|\.$|[(,;]|over\b|versus\b|vs\b|against\b|compared\b)")
_LESS = re.compile(r"less|lower|reduc|short|slow|fewer|off\b|drop|^\W*[-−]")


@dataclass(frozen=True, slots=True)
class Prediction:
    """A technique in the model's own words, empty for none; `gain` is base latency over the new kernel's."""

    technique: str = ""
    gain: float | None = None


NOTHING_PREDICTED = Prediction()


def read_prediction(reply: str) -> Prediction:
    """The first `Technique:` and the first readable `Predicted gain:` of a reply, outside its code."""
    technique, gain = "", None
    for line in prose(answer_part(reply)):
        match = _GAIN.search(line)
        if match and gain is None:
            gain = read_gain(match[1])
        before = line[: match.start()] if match else line
        if not technique and (named := _TECHNIQUE.match(before)):
            technique = read_technique(named[1])
    return Prediction(technique, gain)


def read_prediction_field(reply: str) -> Prediction:
    """What the last JSON object of a reply says in its fields of these names."""
    fields = read_object(reply)
    technique, gain = (fields.get(name) for name in PREDICTED) if isinstance(fields, dict) else (None, None)
    return Prediction(read_technique(technique), read_gain(gain))


def read_technique(value: object) -> str:
    """A name in one line without marks; empty where none was given."""
    text = " ".join(value.split()).strip(_MARKS) if isinstance(value, str) else ""
    if text.lower() in _NOTHING:
        return ""
    return text if len(text) <= LENGTH else text[: LENGTH - 1] + "…"


def read_gain(value: object) -> float | None:
    """A factor from `1.3x`, `1.2 to 1.4x` (their geometric mean), `30 %` (faster) or a plain number; None from all
    else."""
    words = f"{value}"[:200].lower() if isinstance(value, (str, int, float)) else ""
    text = words.strip(_MARKS)
    if match := _FACTOR.search(text):
        gain = _mean(match[1], match[2] or match[3])
    elif match := _PERCENT.search(text):
        gain = 1 + _mean(match[1], match[2]) / 100 if not _LESS.search(words) else 0.0
    elif match := _BARE.match(text):
        gain = _mean(match[1], match[2])
        gain = gain if gain <= BARE_MOST else 0.0
    else:
        return None
    return gain if LEAST <= gain <= MOST else None


def _mean(low: str | None, high: str) -> float:
    top = float(high.replace(",", "."))
    return math.sqrt(float(low.replace(",", ".")) * top) if low else top


def prose(answer: str) -> Iterator[str]:
    """The lines outside of closed fenced blocks."""
    code = {n for block in fences(answer) for n in range(block.line, block.line + block.text.count("\n") + 2)}
    return (line for number, line in enumerate(answer.split("\n")) if number not in code)
