import json
from pathlib import Path

from engine.cli import experience
from engine.search.prompting import as_json, message
from storage.run import events as ev
from storage.run.blobs import Blobs
from storage.run.folder import RunFolder
from storage.run.journal import Journal
from storage.run.settings import Origin
from tests.engine.story import Story


def test_each_call_for_a_kernel_is_a_prompt_a_reply_and_what_it_was_worth(home: Path) -> None:
    story, folder = Story(), RunFolder(home / "runs" / "story")
    folder.write_settings(story.settings)
    blobs = Blobs(folder.blobs)
    prompt = blobs.put(as_json([message("user", "hint.md", hints="- faster")]))

    def asked(role: str, reply: str, outcome: str, name: str = "") -> None:
        step = story.step + 1
        story.tell(ev.StepStarted(step, role, 0, None))
        called = (step, 0, role, story.record.step_index, None, "m", prompt, blobs.put(reply), 9, 5, 0, 0, 0.1, 1.0)
        story.tell(ev.ModelCalled(*called, "stop"))
        story.step = step - bool(name)
        if name:
            story.candidate(name, Origin.REPAIR)
        story.tell(ev.StepFinished(step, role, 1.0, outcome))

    asked("synthesise", "nothing", "patch_failed")
    asked("synthesise", "first", "created", "c001")
    story.does_not_compile("c001")
    asked("diagnose", "a semicolon", "written")
    asked("repair", "second", "created", "c002")
    story.passes("c002", 3.0)
    asked("repair", "third", "created", "c003")
    book = Journal(folder.journal_file)
    for event in story.record.events:
        book.append(event)
    told = [json.loads(line) for line in experience.lines(folder)]
    assert [(one["action"], one["reward"], one["kernel"]) for one in told] == [
        ("nothing", -10, None), ("first", -10, "c001"), ("second", 30, "c002"), ("third", None, "c003"),
    ]  # fmt: skip
    assert told[0]["state"][0].keys() == {"role", "text"}
    assert "- faster" in told[0]["state"][0]["text"]
