"""What the words of a command line are read as, and how it says what is wrong with them. Knows no verb."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable
from typing import NoReturn

from storage.run import budgets


class Parser(argparse.ArgumentParser):
    """Says in one line what is wrong with the words given and where help is; exits with 2."""

    def error(self, message: str) -> NoReturn:
        """One line, then the end."""
        text = message.replace("the following arguments are required:", "missing").removeprefix("argument ")
        text = re.sub(r"(.+): invalid choice: ('.*') \(choose from (.*)\)", r"\2 is not a valid \1: use \3", text)
        self.exit(2, f"tilewright: {text}. See: {self.prog} --help\n")


def size(text: str) -> tuple[str, int | float]:
    """`NAME=NUMBER` as a pair.

    Raises:
        argparse.ArgumentTypeError: anything else.
    """
    name, equals, value = text.partition("=")
    try:
        number: int | float = int(value, 0)
    except ValueError:
        try:
            number = float(value)
        except ValueError:
            number = float("nan")
    if not equals or not name.isidentifier() or number != number:
        raise argparse.ArgumentTypeError(f"expected NAME=NUMBER, got {text!r}")
    return name, number


def checked(check: Callable[[str], object]) -> Callable[[str], str]:
    """A converter that hands on a text which `check` has nothing against."""

    def convert(text: str) -> str:
        try:
            check(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error
        return text

    return convert


def weight(text: str) -> float:
    """A share's weight: a number above 0."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no weight: give a number above 0, such as 2 for a double share")
    return number


def share(text: str) -> float:
    """A share of the hardware limit, as a number from above 0 to 1."""
    try:
        return budgets.share(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def positive(text: str) -> int:
    """A whole number from 1 on."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 on")
    return int(text)


def count(text: str) -> int:
    """A whole number from 0 on."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 0 on")
    return int(text)


def seconds(text: str) -> float:
    """A number of seconds above 0."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return number
