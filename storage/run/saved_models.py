"""Models that a person has given names, in `models.toml` under the home folder: endpoints, programs and agents. Holds
no key; knows neither a client nor a process.

    [work]                                  [mine]
    kind = "endpoint"                       kind = "command"
    model = "gpt-5"                         command = ["my-program", "--quiet"]
    base_url = "https://api.openai.com/v1"  timeout_s = 600
    key = "file"
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Any

from storage import files, untrusted
from storage.home import home
from storage.run.models import NAMES, ModelOptions, Options, read_options
from storage.run.steering.command_arguments import MANUAL
from storage.untrusted import UntrustedError

FILE = "models.toml"
RECORDED = "recorded"  # the model of a run whose replies come from a recording
TAKEN = (RECORDED, MANUAL)
AGENT = "agent:"  # may stand before the name of one
EVALUATIONS = 8
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_HEADER = re.compile(r"^[ \t]*\[[ \t]*(?:\"([^\"]*)\"|'([^']*)'|([A-Za-z0-9_-]+))[ \t]*\][ \t]*(?:#.*)?$", re.MULTILINE)


class SavedModelError(UntrustedError):
    """`models.toml` or an entry of it cannot be used; the message says where and what to do."""


class ModelKind(StrEnum):
    """What answers behind a name."""

    ENDPOINT = "endpoint"
    COMMAND = "command"
    AGENT = "agent"


class KeyPlace(StrEnum):
    """Where the key of a saved model is kept; never in the file itself."""

    KEYRING = "keyring"
    FILE = "file"


@dataclass(frozen=True, slots=True)
class Program:
    """A program that answers as a model. What is read of its output is a JSON path, which begins with `$`, or a
    regular expression with one group; several paths of a number are added with ` + `."""

    command: tuple[str, ...]
    """`{prompt_file}` and `{messages_file}` stand for files with the prompt, which is on standard input too."""
    timeout_s: float | None = None
    reply: str = ""
    """What of the output is the reply; empty for all of it."""
    input_tokens: str = ""
    output_tokens: str = ""
    cost_usd: str = ""
    window: int | None = None
    """Tokens of prompt and reply together."""
    evaluations: int | None = None
    """Of an agent: how often one call of it may check, time or profile. None for a program that only replies."""


def is_path(spec: str) -> bool:
    """Whether what is read of an output is a JSON path; a regular expression otherwise."""
    return spec.startswith(("$.", "$["))


@dataclass(frozen=True, slots=True)
class SavedModel:
    """One entry: an endpoint, whose options hold its model and address, or a program, which may be an agent."""

    name: str
    endpoint: ModelOptions | None = None
    key: KeyPlace | None = None
    program: Program | None = None

    @property
    def kind(self) -> ModelKind:
        """What answers."""
        if self.program is None:
            return ModelKind.ENDPOINT
        return ModelKind.COMMAND if self.program.evaluations is None else ModelKind.AGENT

    @property
    def priced_as(self) -> str:
        """Its name in the table of prices."""
        return self.name if self.endpoint is None else self.endpoint.model or self.name


Saved = tuple[SavedModel, ...]


def read(path: Path | None = None) -> Saved:
    """Every entry, in the order of the file; none where there is no file.

    Raises:
        SavedModelError: the file cannot be read, or an entry makes no sense.
    """
    path = path or home() / FILE
    try:
        text = untrusted.read_text(path)
        tables = untrusted.toml_table(text, f"{path}")
    except FileNotFoundError:
        return ()
    except UntrustedError as error:
        raise SavedModelError(f"{error}: correct it, or remove it") from error
    return tuple(_entry(name, table, _Place(path, text, name)) for name, table in tables.items())


def readable() -> Saved:
    """Every entry; none where the file cannot be read."""
    try:
        return read()
    except SavedModelError:
        return ()


def named(name: str) -> str:
    """The name of a saved model by itself: that of an agent may have `agent:` before it."""
    rest = name.removeprefix(AGENT)
    return rest if any(entry.name == rest and entry.kind is ModelKind.AGENT for entry in readable()) else name


def used(names: Iterable[str | None], before: Saved = ()) -> Saved:
    """The entries that these names stand for, those of `before` where the file has none by now or cannot be read. That
    it cannot is told only where it has one of the others.

    Raises:
        SavedModelError: an entry that is named cannot be read.
    """
    wanted = {name for name in names if name and name not in TAKEN}
    try:
        saved = read() if wanted else ()
    except SavedModelError:
        if (wanted - {entry.name for entry in before}) & _named_in(home() / FILE):
            raise
        saved = ()
    by_name = {entry.name: entry for entry in (*before, *saved)}
    return tuple(by_name[name] for name in sorted(wanted & by_name.keys()))


def used_by(model: str, options: Options, before: Saved = ()) -> Saved:
    """The entries that a run with this model and these options uses; raises as `used`."""
    return used((model, *(option.model for option in options)), before)


def keep(entry: SavedModel) -> None:
    """Write an entry in the place of the one of that name. What else stands in the file stays as it is.

    Raises:
        SavedModelError: it makes no sense, or the file cannot be changed safely.
    """
    check_name(entry.name)
    _rewrite(entry.name, _text_of(entry), entry)


def remove(name: str) -> None:
    """Take an entry out of the file; raises as `keep`."""
    _rewrite(name, "", None)


def check_name(name: str) -> None:
    """Raises SavedModelError for what no saved model can be called."""
    if not _NAME.fullmatch(name) or name in TAKEN:
        raise SavedModelError(
            f"{name!r} cannot name a model: use letters, digits, '.', '-' and '_', and none of {', '.join(TAKEN)}"
        )


def checked(kind: ModelKind, name: str, table: Mapping[str, Any]) -> SavedModel:
    """An entry from what a form holds; fields that are empty are left out.

    Raises:
        SavedModelError: it makes no sense.
    """
    check_name(name)
    given = {field: value for field, value in table.items() if value not in ("", None, [])}
    return _entry(name, {"kind": str(kind), **given}, _Place(None, "", name))


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an entry stands, for what is said of it."""

    path: Path | None
    text: str
    name: str

    def fault(self, what: str) -> SavedModelError:
        if self.path is None:
            return SavedModelError(what)
        line = next((f", line {self.text[:m.start()].count(chr(10)) + 1}" for m in _HEADER.finditer(self.text)
                     if self.name in m.groups()), "")  # fmt: skip
        return SavedModelError(f"{self.path}{line}, [{self.name}]: {what}")


def _entry(name: str, table: Any, place: _Place) -> SavedModel:
    if not isinstance(table, dict):
        raise place.fault("this stands outside of a table: write [NAME] above it")
    try:
        check_name(name)
    except SavedModelError as error:
        raise place.fault(f"{error}. Quote a name with a dot in it") from None
    kind = table.get("kind")
    if kind not in set(ModelKind):
        raise place.fault(f"kind must be one of {', '.join(ModelKind)}, not {kind!r}")
    given = {field: value for field, value in table.items() if field != "kind"}
    return _KINDS[ModelKind(kind)](name, given, place)


def _endpoint(name: str, given: dict[str, Any], place: _Place) -> SavedModel:
    _see_that_known(given, (*NAMES, "key"), place)
    key = given.pop("key", None)
    if key is not None and key not in set(KeyPlace):
        raise place.fault(f"key says where the key is kept, {' or '.join(KeyPlace)}, and is never the key itself")
    if not isinstance(given.get("model"), str) or not given["model"].strip():
        raise place.fault("model is missing: add the model's name at the endpoint")
    try:
        (options,) = read_options("\n".join(f"{field}={value}" for field, value in given.items()))
    except ValueError as error:
        raise place.fault(f"{error}") from None
    return SavedModel(name, options, None if key is None else KeyPlace(key))


def _command(name: str, given: dict[str, Any], place: _Place) -> SavedModel:
    _see_that_known(given, _PROGRAM, place)
    return _program(name, given, place)


def _agent(name: str, given: dict[str, Any], place: _Place) -> SavedModel:
    _see_that_known(given, (*_PROGRAM, "evaluations"), place)
    return _program(name, {"evaluations": EVALUATIONS} | given, place)


def _program(name: str, given: dict[str, Any], place: _Place) -> SavedModel:
    command = given.pop("command", None)
    is_list = isinstance(command, list) and all(isinstance(word, str) for word in command)
    if not is_list or not command or not command[0]:
        raise place.fault('command is a list of the program and its arguments, as ["llm", "-m", "gpt-5"]')
    for number in ("timeout_s", *_WHOLE):
        value = given.get(number)
        is_number = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf")
        if value is not None and not (is_number and (number not in _WHOLE or isinstance(value, int))):
            raise place.fault(f"{number} is a number above 0, not {value!r}")
    for spec in ("reply", "input_tokens", "output_tokens", "cost_usd"):
        if (value := given.get(spec)) is not None and (why := _fault_of(value)):
            raise place.fault(f"{spec}: {why}")
    return SavedModel(name, program=Program(tuple(command), **given))


_PROGRAM = tuple(field.name for field in fields(Program) if field.name != "evaluations")
_WHOLE = ("window", "evaluations")
_KINDS: Mapping[ModelKind, Callable[[str, dict[str, Any], _Place], SavedModel]] = {
    ModelKind.ENDPOINT: _endpoint,
    ModelKind.COMMAND: _command,
    ModelKind.AGENT: _agent,
}


def _see_that_known(given: Mapping[str, Any], names: tuple[str, ...], place: _Place) -> None:
    if unknown := sorted(set(given) - set(names)):
        raise place.fault(f"unknown {', '.join(unknown)}; there are kind, {', '.join(names)}")


def _fault_of(spec: Any) -> str:
    """Why something says nothing about an output; empty where it does."""
    if not isinstance(spec, str) or not spec:
        return "a JSON path such as $.usage.input_tokens, or a regular expression with one group"
    if is_path(spec):
        return ""
    try:
        return "" if re.compile(spec).groups == 1 else f"{spec!r} needs exactly one group, in round brackets"
    except re.error as error:
        return f"{spec!r} is no regular expression: {error}"


def _named_in(path: Path) -> set[str]:
    """The names of a file that cannot be read as a whole."""
    try:
        text = path.read_text(errors="replace")
    except OSError:
        return set()
    return {name for match in _HEADER.finditer(text) for name in match.groups() if name}


def _rewrite(name: str, entry_text: str, expected: SavedModel | None) -> None:
    files.make_folder(home())
    path = home() / FILE
    with files.Lines(path.with_name(f".{FILE}.lock")):
        before = {entry.name: entry for entry in read(path)}
        after = {other: entry for other, entry in before.items() if other != name}
        if expected is not None:
            after[name] = expected
        text = _without(path.read_text() if path.exists() else "", name)
        draft = f"{text.rstrip()}\n\n{entry_text}".lstrip() if entry_text else text
        try:
            tables = untrusted.toml_table(draft, FILE)
            written = {other: _entry(other, table, _Place(None, "", other)) for other, table in tables.items()}
        except UntrustedError as error:
            raise SavedModelError(f"{path} cannot be changed safely ({error}): edit it by hand") from error
        if written != after:
            raise SavedModelError(f"{path} cannot be changed safely: edit the table [{name}] by hand")
        files.replace(path, draft)


def _without(text: str, name: str) -> str:
    """The text without a table: from its header to the next one."""
    headers = [*_HEADER.finditer(text)]
    for number, header in enumerate(headers):
        if name in header.groups():
            end = headers[number + 1].start() if number + 1 < len(headers) else len(text)
            return text[: header.start()] + text[end:]
    return text


def _text_of(entry: SavedModel) -> str:
    values: dict[str, Any] = {"kind": str(entry.kind)}
    if entry.program is not None:
        values |= {field.name: getattr(entry.program, field.name) for field in fields(Program)}
    if entry.endpoint is not None:
        values |= {name: getattr(entry.endpoint, name) for name in NAMES}
    values["key"] = None if entry.key is None else str(entry.key)
    lines = [f"{name} = {_toml(value)}" for name, value in values.items() if value not in (None, "")]
    name = entry.name if re.fullmatch(r"[A-Za-z0-9_-]+", entry.name) else f'"{entry.name}"'
    return "\n".join([f"[{name}]", *lines, ""])


def _toml(value: Any) -> str:
    """A value as TOML writes it: its strings and lists are those of JSON, but for DEL."""
    plain = [*value] if isinstance(value, tuple) else value
    return json.dumps(plain, ensure_ascii=False).replace("\x7f", "\\u007f")
