"""One JSON object of a reply, read strictly: what does not fit is reported to the model, all of it at once. Shared by
methods that ask for more than texts; knows no question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.search.patching.edits import EditError
from engine.search.patching.prediction import read_gain
from engine.search.patching.reply import read_object

SENTENCE, NAME = 400, 60  # characters
LEAST_GAIN, MOST_GAIN = 0.2, 20.0


def is_number(value: object) -> bool:
    """Whether JSON's value is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def listed(names: Sequence[str]) -> str:
    """Names as a report tells them."""
    shown = ", ".join(f'"{name[:NAME]}"' for name in names[:20])
    return f"{shown} and {len(names) - 20} more" if len(names) > 20 else shown


class Object:
    """One JSON object of a reply. What is taken is checked; faults are gathered, so that one report names them all."""

    def __init__(self, fields: Mapping[str, Any], where: str, faults: list[str]) -> None:
        self._found, self._where, self.faults = dict(fields), where, faults
        self._taken = set[str]()

    @classmethod
    def of(cls, reply: str) -> Object:
        """The last one of a reply.

        Raises:
            EditError: there is none.
        """
        value = read_object(reply)
        if not isinstance(value, dict):
            raise EditError("No JSON object was found in the reply.")
        return cls(value, "", [])

    def take(self, name: str) -> Any:
        """A value as it is, None where it is missing."""
        self._taken.add(name)
        return self._found.get(name)

    def text(self, name: str, most: int = SENTENCE, *, may_lack: bool = False) -> str:
        """A text in one line; empty where it may be missing and is.

        A sentence that is too long is cut: the reply is kept whole, and asking for a shorter one costs a call.
        """
        value = self.take(name)
        if may_lack and (value is None or value == ""):
            return ""
        text = " ".join(value.split()) if isinstance(value, str) else ""
        if not text:
            self.fault(name, "must be a text that is not empty")
        elif len(text) > most == NAME:
            self.fault(name, f"has {len(text):,} characters: at most {most}")
        return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"

    def code(self, name: str, most: int) -> str:
        """Lines as they are, which may be missing; empty lines around them go, and what is too long is cut."""
        value = self.take(name)
        if value is not None and not isinstance(value, str):
            self.fault(name, "must be lines of code in one text")
            return ""
        lines = (value or "").strip("\n").rstrip()
        return lines if len(lines) <= most else f"{lines[: most - 2].rstrip()}\n…"

    def choice(self, name: str, allowed: Sequence[str]) -> str:
        """One of a closed set, found whatever its case."""
        value = self.take(name)
        choices = {choice.lower(): choice for choice in allowed}
        text = " ".join(value.split()).lower() if isinstance(value, str) else ""
        if text not in choices:
            self.fault(name, f"must be one of {listed(allowed)}")
        return choices.get(text, "")

    def truth(self, name: str) -> bool:
        """true or false."""
        value = self.take(name)
        if not isinstance(value, bool):
            self.fault(name, "must be true or false")
        return value is True

    def share(self, name: str) -> float:
        """A number from 0 to 1."""
        value = self.take(name)
        if not is_number(value) or not 0 <= value <= 1:
            self.fault(name, "must be a number from 0 to 1")
            return 0.0
        return float(value)

    def gain(self, name: str) -> float:
        """A factor over the parent, such as 1.2 or "1.2x"."""
        value = self.take(name)
        gain = read_gain(value) if not isinstance(value, bool) else None
        if gain is None or not LEAST_GAIN <= gain <= MOST_GAIN:
            self.fault(name, f"must be a factor over the parent from {LEAST_GAIN:g} to {MOST_GAIN:g}, such as 1.2")
            return 1.0
        return gain

    def texts(self, name: str, most: int) -> list[str]:
        """A list of texts, which may be missing."""
        value = self.take(name)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(text, str) and text.strip() for text in value):
            self.fault(name, "must be a list of texts")
            return []
        if len(value) > most:
            self.fault(name, f"has {len(value)} entries: at most {most}")
        return [" ".join(text.split()) for text in value]

    def objects(self, name: str, most: int) -> list[Object]:
        """A list of objects, which may be missing; their faults are gathered with these."""
        value = self.take(name)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            self.fault(name, "must be a list of objects")
            return []
        if len(value) > most:
            self.fault(name, f"has {len(value)} entries: at most {most}")
        return [Object(item, f"{name} {number}: ", self.faults) for number, item in enumerate(value[:most], 1)]

    def fault(self, name: str, what: str) -> None:
        """Something does not fit."""
        self.faults.append(f'{self._where}"{name}" {what}')

    def close(self) -> None:
        """Nothing may be left that nobody asked for."""
        if unknown := [name for name in self._found if name not in self._taken]:
            self.faults.append(f"{self._where}{listed(unknown)} was not asked for")

    def report(self) -> None:
        """Raises EditError with all faults, if there are any."""
        if self.faults:
            raise EditError("The object cannot be used: " + "; ".join(self.faults[:12]) + ".")
