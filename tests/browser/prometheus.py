"""Reads Prometheus' text format 0.0.4 as strictly as its own parser: anything else is an error."""

from __future__ import annotations

import re

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|$)')
SAMPLE = re.compile(rf"({NAME})(?:\{{(.*)\}})? (\S+)")
Samples = dict[str, list[tuple[dict[str, str], float]]]


def read_metrics(text: str) -> Samples:
    """Every metric with its samples; each needs its HELP and TYPE right before it, and no sample comes twice."""
    assert text.endswith("\n")
    found: Samples = {}
    kinds: dict[str, str] = {}
    current = helped = ""
    for line in text.splitlines():
        if match := re.fullmatch(rf"# HELP ({NAME}) (.+)", line):
            helped = match[1]
            assert helped not in kinds, f"{helped} comes twice"
        elif match := re.fullmatch(rf"# TYPE ({NAME}) (gauge|counter)", line):
            current = match[1]
            assert current == helped
            assert (match[2] == "counter") == current.endswith("_total"), f"{current} is a {match[2]}"
            kinds[current], found[current] = match[2], []
        else:
            name, labels, value = read_sample(line)
            assert name == current, f"{name} stands under {current}"
            assert labels not in [known for known, _ in found[name]], line
            assert kinds[name] != "counter" or value >= 0
            found[name].append((labels, value))
    return found


def read_sample(line: str) -> tuple[str, dict[str, str], float]:
    match = SAMPLE.fullmatch(line)
    assert match, f"no sample: {line!r}"
    labels: dict[str, str] = {}
    rest = match[2] or ""
    while rest:
        label = LABEL.match(rest)
        assert label, f"bad labels: {line!r}"
        labels[label[1]] = re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], label[2])
        rest = rest[label.end() :]
    return match[1], labels, float(match[3])
