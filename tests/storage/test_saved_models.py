"""`models.toml`: read strictly, written whole, and no reason to fail for whoever does not use it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from storage import codec
from storage.run import saved_models
from storage.run.models import ModelOptions, ModelRole
from storage.run.saved_models import KeyPlace, ModelKind, Program, SavedModel, SavedModelError, checked

WORK = SavedModel("work", ModelOptions(ModelRole.ALL, "gpt-5", "http://localhost:9/v1", window=64000), KeyPlace.FILE)
MINE = SavedModel("my.own", program=Program(("sh", "-c", 'echo "é\t"'), 5.0, r"reply: (.*)", cost_usd="$.cost"))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TILEWRIGHT_HOME", str(tmp_path))
    return tmp_path


def test_what_is_kept_is_read_back_changed_and_removed_and_the_rest_of_the_file_stays(home: Path) -> None:
    (home / "models.toml").write_text('# mine\n[hand]  # by hand\nkind = "endpoint"\nmodel = "m"\n')
    saved_models.keep(WORK)
    saved_models.keep(MINE)
    assert saved_models.read()[1:] == (WORK, MINE)
    changed = SavedModel("work", ModelOptions(model="gpt-6"))
    saved_models.keep(changed)
    saved_models.remove("my.own")
    assert saved_models.read()[1:] == (changed,)
    assert (home / "models.toml").read_text().startswith("# mine\n[hand]  # by hand\n")
    assert codec.from_plain(SavedModel, codec.to_plain(MINE)) == MINE


def test_entries_that_are_kept_at_once_are_all_kept() -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: saved_models.keep(SavedModel(f"m{n}", ModelOptions(model="m"))), range(24)))
    assert {entry.name for entry in saved_models.read()} == {f"m{n}" for n in range(24)}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[a]\nkind = "endpoint"\nmodel = "m"\n\n[b]\nkind = "robot"\n', "line 5, [b]: kind must be one of endpoint"),
        (
            '[a]\nkind = "endpoint"\nmodel = "m"\napi_key = "sk-1"\n',
            "line 1, [a]: unknown api_key; there are kind, model",
        ),
        ('[a]\nkind = "endpoint"\nmodel = "m"\nkey = "sk-123"\n', "key says where the key is kept, keyring or file"),
        ('[a]\nkind = "endpoint"\n', "model is missing"),
        ('[a]\nkind = "endpoint"\nmodel = "m"\nwindow = "wide"\n', "window takes a number above 0"),
        ('[a]\nkind = "endpoint"\nmodel = "m"\nbase_url = "http://me:secret@x/v1"\n', "must contain no password"),
        ('[a]\nkind = "command"\ncommand = "llm"\n', "command is a list of the program and its arguments"),
        ('[a]\nkind = "command"\ncommand = ["llm"]\ntimeout_s = 0\n', "timeout_s is a number above 0"),
        ('[a]\nkind = "command"\ncommand = ["llm"]\nreply = "(a)(b)"\n', "needs exactly one group"),
        ('[a]\nkind = "command"\ncommand = ["llm"]\nreply = "("\n', "is no regular expression"),
        ('kind = "endpoint"\n', "this stands outside of a table"),
        ('[manual]\nkind = "endpoint"\nmodel = "m"\n', "'manual' cannot name a model"),
        ("[a\n", "is no TOML"),
    ],
)
def test_what_makes_no_sense_is_said_with_its_place_and_a_remedy(home: Path, text: str, said: str) -> None:
    (home / "models.toml").write_text(text)
    with pytest.raises(SavedModelError) as caught:
        saved_models.read()
    assert said in str(caught.value)
    assert str(home / "models.toml") in str(caught.value)
    assert "sk-" not in str(caught.value)


def test_a_file_that_cannot_be_read_stops_only_those_that_use_it(home: Path) -> None:
    (home / "models.toml").write_text('[broken]\nkind = "endpoint"\n\n[["x"\n')
    assert saved_models.readable() == saved_models.used(["gpt-5", "recorded", None]) == ()
    assert saved_models.used(["old"], (SavedModel("old", ModelOptions(model="m")),))[0].name == "old"
    assert saved_models.used(["broken"], (SavedModel("broken", ModelOptions(model="m")),))[0].name == "broken"
    with pytest.raises(SavedModelError):
        saved_models.used(["broken"])
    with pytest.raises(SavedModelError):
        saved_models.keep(WORK)
    assert (home / "models.toml").read_text().startswith("[broken]")


def test_a_table_that_cannot_be_found_by_its_lines_is_left_to_a_person(home: Path) -> None:
    before = 'a = { kind = "endpoint", model = "m" }\n'
    (home / "models.toml").write_text(before)
    with pytest.raises(SavedModelError, match="cannot be changed safely"):
        saved_models.remove("a")
    assert (home / "models.toml").read_text() == before


@pytest.mark.parametrize("name", ["", "recorded", "../x", "a b", "-a", "a/b", "x" * 65])
def test_a_name_is_one_that_a_file_and_a_command_line_can_have(name: str) -> None:
    with pytest.raises(SavedModelError, match="cannot name a model"):
        checked(ModelKind.ENDPOINT, name, {"model": "m"})
