"""Steering in a real browser: every control writes its command, and the page shows what becomes of it."""

from __future__ import annotations

import itertools
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

from engine import supervisor
from storage.run import events as ev
from storage.run.blobs import Blobs
from storage.run.folder import RunFolder
from storage.run.forks import Fork
from storage.run.settings import RunState, StepKind, Switch
from storage.run.steering import commands
from storage.run.steering.command_arguments import Fallback, Submission
from storage.run.steering.verbs import Command, CommandKind
from tests import samples
from tests.browser.conftest import SIZE, Server, at_rest, becomes, drawn, half_drawn
from tests.browser.play import PretendEngine, finished_depth, model_step

pytestmark = pytest.mark.browser
RESUME = re.compile("^Resume(?! the)")


def begin(page: Page, server: Server, run_id: str, depths: int = 3) -> PretendEngine:
    engine = PretendEngine(server.runs, run_id, depths=6)
    engine.play_until(finished_depth, times=depths)
    engine.play_until(model_step)
    page.goto(f"{server.url}/run?run={run_id}")
    expect(page.get_by_role("button", name="Stop", exact=True)).to_be_visible()
    drawn(page).locator("summary").filter(has_text="More").click()
    at_rest(page.get_by_role("button", name="Base kernel", exact=True))
    return engine


def steering_rows(page: Page) -> Locator:
    return page.get_by_role("table", name="Steering commands, newest first").get_by_role("row")


def follow(page: Page, engine: PretendEngine, kind: CommandKind, argument: str = "") -> None:
    """The command arrives as asked, and the page shows each of its moments."""
    newest = steering_rows(page).nth(1)
    expect(newest).to_contain_text("sent")
    takes_effect(engine, kind, argument, lambda: expect(newest).to_contain_text("received"))
    expect(newest).to_contain_text("in effect")


def takes_effect(engine: PretendEngine, kind: CommandKind, argument: str, look: Callable[[], object] = str) -> None:
    """The command arrives as asked. Each moment of it that is waited for on the page is one more drawing."""
    command = engine.next_command()
    assert (command.kind, command.argument) == (kind, argument)
    engine.emit(ev.CommandAcknowledged(command, 30))
    look()
    engine.emit(ev.CommandEffective(command.command_id, 30, "at step 30"))


def test_switches_and_keys_take_effect_and_a_run_that_ends_clicks_none(page: Page, server: Server) -> None:
    engine = begin(page, server, "switches")
    for label, kind, value in (
        ("Collect profiles", CommandKind.COLLECT, "on"),
        ("Show profiles to the model", CommandKind.EXPOSE, "off"),
    ):
        button = page.get_by_role("group", name=label).get_by_role("button", name=value, exact=True)
        expect(button).to_have_attribute("aria-pressed", "false")
        button.click()
        if kind is CommandKind.COLLECT:
            follow(page, engine, kind, value)
        else:
            takes_effect(engine, kind, value)
        expect(button).to_have_attribute("aria-pressed", "true")
    page.get_by_role("heading", name="Steer", exact=True).click()
    page.keyboard.press("h")
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("textbox").fill("hp")
    dialog.get_by_role("button", name="Send the hint").click()
    sent = engine.next_command()
    assert (sent.kind, sent.argument) == (CommandKind.HINT, "hp")
    expect(dialog).to_have_count(0)
    page.get_by_role("heading", name="Steer", exact=True).click()
    page.keyboard.press("p")
    newest = steering_rows(page).nth(1)
    expect(newest).to_contain_text("sent")
    command = engine.next_command()
    assert command.kind is CommandKind.PAUSE
    engine.emit(ev.CommandAcknowledged(command, 30))
    engine.emit(ev.CommandRefused(command.command_id, 30, "the run ends with this step"))
    expect(newest).to_contain_text("rejected")
    expect(newest).to_contain_text("the run ends with this step")
    engine.emit(ev.RunEnded(RunState.FINISHED, "done", "c001"))
    engine.die()
    expect(page.get_by_text("No engine is running.")).to_be_visible()
    page.get_by_role("button", name="Share", exact=True).click()
    expect(page.get_by_role("button", name="Download report")).to_be_visible()
    assert engine.asked() == []


def press(page: Page, name: str) -> Locator:
    """Press a button of the panel that opens a dialog."""
    page.get_by_role("button", name=name, exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    return dialog


def choose_the_first_kernel(page: Page, dialog: Locator) -> None:
    dialog.get_by_role("combobox").first.click()
    page.get_by_role("option").filter(has_text="kernel 1 ·").click()


def test_going_back_shows_the_diff_and_carries_the_profile_switch_and_a_hint(page: Page, server: Server) -> None:
    engine = begin(page, server, "rolls", depths=4)
    page.set_viewport_size({"width": 1280, "height": 800})
    dialog = press(page, "Go back or fork")
    choose_the_first_kernel(page, dialog)
    expect(dialog.locator("table.diff td.del").first).to_be_visible()
    page.wait_for_timeout(500)
    head = dialog.get_by_role("heading", name="Go back or fork")
    expect(head).to_be_in_viewport(ratio=1)
    head.click()
    page.keyboard.press("n")  # its diff has keys of its own
    expect(head).not_to_be_in_viewport()
    expect(dialog.get_by_text("the next one starts from kernel 1").first).to_be_visible()
    dialog.get_by_text("do not show", exact=True).click()
    expect(dialog.get_by_text("without showing the model a profile")).to_be_visible()
    hint = dialog.get_by_label("Hint for the next prompt")
    hint.fill("keep the tile")
    engine.play_until(finished_depth)
    expect(hint).to_have_value("keep the tile")
    dialog.get_by_role("button", name="Go back to kernel 1").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(steering_rows(page).nth(3)).to_contain_text("sent")
    expect(page.get_by_text("Depth 4 ends with").first).to_be_visible()
    asked = [(c.kind, c.argument) for c in engine.asked()]
    assert asked == [
        (CommandKind.EXPOSE, "off"), (CommandKind.HINT, "keep the tile"), (CommandKind.ROLL_BACK, "c001"),
    ]  # fmt: skip


def test_going_back_in_the_last_depth_offers_one_more(page: Page, server: Server) -> None:
    engine = begin(page, server, "last")
    engine.emit(ev.BudgetChanged(replace(engine.script.settings.budget, depths=3)))
    dialog = press(page, "Go back or fork")
    more = dialog.get_by_text("One more depth: 4 in all")
    more.click()
    expect(dialog.get_by_text("This is the last depth: going back ends the run.")).to_be_visible()
    more.click()
    expect(dialog.get_by_text("This is the last depth")).to_have_count(0)
    dialog.get_by_role("button", name="Go back to kernel").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    asked = [(c.kind, c.argument) for c in engine.asked()]
    assert asked[0] == (CommandKind.SET_BUDGET, "depths=4")
    assert [kind for kind, _ in asked] == [CommandKind.SET_BUDGET, CommandKind.ROLL_BACK]


def test_a_run_that_ends_behind_an_open_dialog_is_not_sent_what_was_confirmed_for_it(
    page: Page, server: Server
) -> None:
    engine = begin(page, server, "overtaken", depths=4)
    dialog = press(page, "Go back or fork")
    choose_the_first_kernel(page, dialog)
    dialog.get_by_role("button", name="Go back to kernel 1").wait_for()
    engine.emit(ev.RunEnded(RunState.FINISHED, "all depths are done", "c001"))
    engine.die()
    other_tab = page.context.new_page()
    other_tab.goto(f"{server.url}/run?run=overtaken")
    expect(other_tab.get_by_text("No engine is running.")).to_be_visible()
    other_tab.close()
    dialog.get_by_role("button", name="Go back to kernel 1").click()
    expect(dialog.get_by_text("The run has ended while this was open. Nothing was sent")).to_be_visible()
    expect(dialog.get_by_role("button", name="Start a new run from kernel")).to_be_visible()
    assert engine.asked() == []


def test_a_dialog_takes_the_cursor_keeps_what_was_typed_and_is_sent_from_the_keyboard(
    page: Page, server: Server
) -> None:
    engine = begin(page, server, "minded")
    page.keyboard.press("h")
    hint = page.get_by_role("dialog").get_by_label("Hint")
    expect(hint).to_be_focused()
    page.keyboard.type("use shared memory")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("h")
    expect(hint).to_have_value("use shared memory")
    expect(hint).to_be_focused()
    page.keyboard.press("Control+Enter")
    asked = engine.next_command()
    assert (asked.kind, asked.argument) == (CommandKind.HINT, "use shared memory")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("h")
    expect(hint).to_have_value("")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("dialog").get_by_text("Hint not sent: it is empty.")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert engine.asked() == []


def test_no_key_of_the_page_acts_under_a_dialog(page: Page, server: Server) -> None:
    engine = begin(page, server, "covered")
    page.locator('tr[data-id="c001"]').get_by_role("link").first.click()
    kernel = page.get_by_role("heading", name="Kernel 1", exact=True)
    expect(kernel).to_be_visible()
    dialog = press(drawn(page), "Stop")
    expect(dialog).to_contain_text("covered")
    for key in ("p", "f", "h", "j"):
        page.keyboard.press(key)
    page.wait_for_timeout(1000)
    expect(dialog).to_contain_text("Stop this run?")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    assert engine.asked() == []
    expect(kernel).to_be_visible()
    expect(page.get_by_role("button", name="Freeze page")).to_be_visible()
    page.get_by_role("button", name="Keys").click()
    expect(page.get_by_text("pause the run, or resume it")).to_be_visible()
    page.keyboard.press("p")  # what lists the keys does not keep them from anybody
    assert engine.next_command().kind is CommandKind.PAUSE


def test_a_fork_starts_a_run_of_its_own_with_other_settings_from_a_kernels_page(page: Page, server: Server) -> None:
    folder = samples.write_run(server.runs, "forked", depths=4)
    page.goto(f"{server.url}/candidate?run=forked&candidate=c001")
    page.get_by_role("button", name="Go back or fork from here").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("A new run tries kernel 1 on cpu first")).to_be_visible()
    page.set_viewport_size({"width": 390, "height": 844})  # higher than the screen there
    expect(dialog.get_by_role("button", name="Start a new run from kernel 1")).to_be_in_viewport(ratio=1)
    page.set_viewport_size(SIZE)
    dialog.get_by_text("do not profile", exact=True).click()
    for model, is_heedless in (("recorded", True), ("manual", False)):
        dialog.get_by_role("combobox", name="Model").click()
        page.get_by_role("option", name=model, exact=True).click()
        told = dialog.get_by_text("Recorded replies ignore prompts and hints")
        expect(told).to_have_count(int(is_heedless))
    dialog.get_by_label("Hint for the next prompt").fill("try larger tiles")
    dialog.get_by_role("button", name="Start a new run from kernel 1").click()
    page.wait_for_url(re.compile(r"run=square_matmul-|run=softmax-|run=swish-"))
    made = RunFolder(server.runs / parse_qs(urlsplit(page.url).query)["run"][0])
    settings, source = made.read_settings(), folder.read_settings()
    assert settings.forked_from is not None
    assert (settings.forked_from.run_id, settings.forked_from.candidate_id) == ("forked", "c001")
    assert settings.strategy_options["expose_from_depth"] == source.budget.depths + 1
    assert settings.collect is Switch.OFF
    assert [c.argument for c in commands.read_from(made.commands_file)[0]] == ["try larger tiles"]
    supervisor.stop(made)


def test_a_stop_that_takes_too_long_can_be_enforced(page: Page, server: Server) -> None:
    engine = PretendEngine(server.runs, "stuck", depths=4)
    engine.play_until(finished_depth, times=2)
    late = Command("late00000000", CommandKind.STOP, "", "grace", time.time() - 30)
    engine.emit(ev.CommandAcknowledged(late, 9))
    page.goto(f"{server.url}/run?run=stuck")
    expect(page.get_by_text("Stopping: requested").first).to_be_visible()
    page.get_by_role("button", name="Force stop").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("SIGTERM")).to_be_visible()
    engine.die()
    dialog.get_by_role("button", name="Force stop").click()
    expect(page.get_by_text("The engine had already ended")).to_be_visible()
    expect(dialog).to_have_count(0)


def test_a_question_stays_and_its_answer_counts_while_news_pour_in(page: Page, server: Server) -> None:
    engine = begin(page, server, "pours")
    with pouring(engine):
        for opens, answers, kind in (
            ("Class", "Change the class", CommandKind.SET_CLASS),
            ("Go back or fork", "Go back to kernel", CommandKind.ROLL_BACK),
            ("Stop", "Stop the run", CommandKind.STOP),
        ):
            dialog = press(page, opens)
            dialog.get_by_role("button", name=answers).click()
            assert engine.next_command().kind is kind
            expect(dialog).to_have_count(0)


@contextmanager
def pouring(engine: PretendEngine) -> Iterator[None]:
    """A step begins or ends at each look of the page, so that it is drawn without end."""
    is_over = threading.Event()

    def pour() -> None:
        for step in itertools.count(1000):
            engine.emit(ev.StepStarted(step, StepKind.PROFILE, 3, "c001"))
            is_over.wait(0.2)
            engine.emit(ev.StepFinished(step, StepKind.PROFILE, 0.05, "profiled"))
            if is_over.wait(0.2):
                return

    thread = threading.Thread(target=pour)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def test_a_kernel_is_edited_by_hand_and_handed_in(page: Page, server: Server) -> None:
    engine = begin(page, server, "edits")
    page.get_by_role("button", name="Edit a kernel by hand").click()
    box = page.get_by_role("textbox", name="Kernel source")
    expect(box).to_have_value(re.compile("class ModelNew"))
    source = box.input_value()
    box.fill(source + "# mine <b>&\n")
    box.press("Control+Enter")
    expect(page.locator("table.diff td.add").filter(has_text="# mine <b>&").first).to_be_visible()
    page.get_by_role("button", name="Submit").click()
    expect(steering_rows(page).nth(1)).to_contain_text("kernel by hand")
    command = engine.next_command()
    given = Submission.parse(command.argument)
    assert Blobs(engine.folder.blobs).get(given.blob) == source + "# mine <b>&\n"


def elsewhere_and_back(page: Page) -> None:
    drawn(page).get_by_role("link", name="System").click()
    expect(page.get_by_role("heading", name="System", exact=True)).to_be_visible()
    page.go_back()


def test_what_was_typed_and_not_sent_is_there_after_a_visit_elsewhere_and_a_new_question_begins_empty(
    page: Page, server: Server
) -> None:
    engine = begin(page, server, "drafted")
    drawn(page).get_by_role("button", name="Edit a kernel by hand").click()
    kernel = page.get_by_role("textbox", name="Kernel source")
    kernel.fill("# half a kernel")
    kernel.press("Tab")
    expect(page.locator("table.diff td.add").filter(has_text="# half a kernel")).to_be_visible()
    elsewhere_and_back(page)
    expect(drawn(page).get_by_role("textbox", name="Kernel source")).to_have_value("# half a kernel")

    drawn(page).get_by_role("link", name="Square matmul").click()
    ask_hint, hint = (
        page.get_by_role("button", name=re.compile("^Hint")),
        page.get_by_role("dialog").get_by_label("Hint"),
    )
    ask_hint.click()
    hint.fill("use shared memory")
    hint.press("Tab")
    at_rest(page.get_by_role("dialog"))
    page.go_back()
    expect(page.get_by_role("heading", name="Edit a kernel by hand")).to_be_visible()
    page.go_forward()
    ask_hint.click()
    expect(hint).to_have_value("use shared memory")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    prompt = Blobs(engine.folder.blobs).put('[{"role": "user", "text": "Write a kernel"}]')
    engine.emit(ev.QuestionAsked(90, 0, StepKind.OPTIMISE, 3, "c001", prompt, "kernel"))
    engine.emit(ev.StateChanged(RunState.WAITING, "a reply"))
    box = drawn(page).get_by_label("Reply", exact=True)
    box.fill("def half(")
    box.press("Tab")
    at_rest(box)
    elsewhere_and_back(page)
    expect(box).to_have_value("def half(")
    page.reload()
    expect(box).to_have_value("def half(")
    drawn(page).get_by_role("button", name="Send reply").click()
    assert engine.next_command().kind is CommandKind.ANSWER
    engine.emit(ev.QuestionAsked(90, 1, StepKind.OPTIMISE, 3, "c001", prompt, "kernel"))
    expect(page.get_by_role("textbox", name="Reply", exact=True)).to_have_value("")  # without the hidden one before


def test_what_was_typed_a_moment_before_the_page_was_left_by_address_is_there_again_and_told(
    page: Page, server: Server
) -> None:
    def typed_and_left(box: Locator, text: str) -> None:
        address = page.url
        expect(drawn(page).get_by_label(label, exact=True)).to_have_count(1)
        box.press("Control+End")
        box.press_sequentially(text)
        page.wait_for_timeout(200)
        page.goto(f"{server.url}/system")
        page.goto(address)
        expect(box).to_have_value(re.compile(f"{re.escape(text)}$"))

    engine = begin(page, server, "unsent")
    label = "Kernel source"
    drawn(page).get_by_role("button", name="Edit a kernel by hand").click()
    kernel = page.get_by_label(label, exact=True)
    expect(kernel).to_have_value(re.compile("class ModelNew"))
    typed_and_left(kernel, "# by hand")
    expect(page.locator("table.diff td.add").filter(has_text="# by hand").first).to_be_visible()

    page.goto(f"{server.url}/run?run=unsent")
    prompt = Blobs(engine.folder.blobs).put('[{"role": "user", "text": "Repair it"}]')
    engine.emit(ev.QuestionAsked(90, 0, StepKind.REPAIR, 3, "c001", prompt, "patch"))
    engine.emit(ev.StateChanged(RunState.WAITING, "a reply"))
    label = "Reply"
    reply = page.get_by_label(label, exact=True)
    typed_and_left(reply, "half a reply")
    drawn(page).get_by_text("Edit the kernel", exact=True).click()
    label = "Kernel source"
    expect(kernel).to_have_value(re.compile("class ModelNew"))
    typed_and_left(kernel, "# in place")
    drawn(page).get_by_role("button", name="Send reply").click()
    answer = engine.next_command()
    assert "# in place" in Blobs(engine.folder.blobs).get(answer.argument.split()[-1])
    drawn(page).get_by_text("Paste a reply", exact=True).click()
    expect(reply).to_have_value("half a reply")
    kept = "Object.keys(localStorage).filter(key => key.includes('-unsent-90-')).length"
    becomes(lambda: page.evaluate(kept), 0)


def test_steps_are_approved_and_skipped(page: Page, server: Server) -> None:
    engine = begin(page, server, "approves")
    at_rest(page.get_by_text("Approve steps before they start")).click()
    at_rest(page.get_by_role("button", name="Apply", exact=True)).click()
    sent = engine.next_command()
    assert (sent.kind, sent.argument) == (CommandKind.ASK_FIRST, "off")
    for step, name, kind in ((90, "Approve", CommandKind.APPROVE), (91, "Reject", CommandKind.SKIP)):
        engine.emit(ev.ApprovalAsked(step, StepKind.COMPILE, 3, "c001", Fallback.NEVER, 60.0))
        engine.emit(ev.StateChanged(RunState.WAITING, "approve the next step"))
        expect(page.get_by_text(f"step {step}, compile")).to_be_visible()
        page.get_by_role("button", name=name, exact=True).click()
        sent = engine.next_command()
        assert (sent.kind, sent.argument) == (kind, str(step))
        engine.emit(ev.StateChanged(RunState.RUNNING, "a person has looked"))
        engine.emit(ev.StepStarted(step, StepKind.COMPILE, 3, "c001"))
        engine.emit(ev.StepFinished(step, StepKind.COMPILE, 0.0, "passed"))
        expect(page.get_by_text(f"step {step}, compile")).to_have_count(0)


def test_every_command_ever_asked_can_be_found_with_what_it_led_to(page: Page, server: Server) -> None:
    folder = samples.write_run(server.runs, "audited", depths=6)
    for number in range(12):
        commands.send(folder.commands_file, CommandKind.HINT, f"idea number {number}", "grace")
    page.goto(f"{server.url}/run?run=audited")
    page.get_by_role("link", name="All commands and their results").click()
    expect(page.get_by_text("showing 14 of 14, newest first")).to_be_visible()
    expect(page.get_by_text("not read").first).to_be_visible()
    page.get_by_label("Find").fill("number 7")
    page.get_by_label("Find").press("Enter")
    expect(page.get_by_text("showing 1 of 14, newest first")).to_be_visible()
    expect(page.get_by_role("table")).to_contain_text("idea number 7")
    expect(page.get_by_role("table")).to_contain_text("grace")


def test_what_is_pressed_counts_and_stays_in_place_and_a_dialog_is_closed_by_leaving(
    page: Page, server: Server
) -> None:
    page.goto("about:blank")  # a loaded page makes one entry in the browser's history
    engine = begin(page, server, "pressed")
    bar = page.get_by_role("group", name="What the engine is doing")
    at_rest(drawn(page).get_by_role("button", name="Class", exact=True)).hover()
    page.mouse.down()
    engine.emit(ev.StepStarted(1000, StepKind.PROFILE, 3, "c001"))
    page.wait_for_timeout(1500)
    assert "Profiling" not in bar.inner_text()
    page.mouse.up()
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(bar).to_contain_text("Profiling")
    base, stood = at_rest(drawn(page).get_by_role("button", name="Base kernel", exact=True)), []
    words = {"Pause": "Pausing after this step", "Class": "Kernel class from the next step"}
    for label, word in words.items():  # without a word, with one, and with one behind a dialog
        stood.append(base.bounding_box())
        page.get_by_role("button", name=re.compile(f"^{label}")).click()
        if label == "Class":
            page.get_by_role("dialog").get_by_role("button", name="Change the class").click()
        expect(page.get_by_role("status").get_by_text(word)).to_be_visible()
        expect(page.get_by_role("dialog")).to_have_count(0)
    assert stood == [base.bounding_box()] * 2
    press(page, "Base kernel")
    page.go_back()
    page.go_forward()
    expect(page.get_by_role("button", name="Stop", exact=True)).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)


def fork_at_work(server: Server, run_id: str, of: str) -> PretendEngine:
    """An engine at work on a run that began with kernel 1 of another one."""
    engine = PretendEngine(server.runs, run_id, depths=6)
    settings = replace(engine.folder.read_settings(), forked_from=Fork(of, "c001", 1, "0" * 64))
    engine.folder.settings_file.unlink()
    engine.folder.write_settings(settings)
    engine.play_until(finished_depth, times=3)
    engine.play_until(model_step)
    return engine


def test_no_way_between_runs_writes_a_command_or_loses_the_page(page: Page, server: Server) -> None:
    parent = begin(page, server, "was-forked")
    child = fork_at_work(server, "forked-off", "was-forked")
    badge = page.get_by_role("link", name="forked from kernel 1 of")
    stop = page.get_by_role("button", name="Stop", exact=True)

    def at(run_id: str) -> None:
        expect(page).to_have_url(re.compile(f"run={run_id}$"))
        expect(badge).to_have_count(int(run_id == "forked-off"))
        expect(stop).to_be_visible()

    with pouring(parent), pouring(child):
        page.get_by_role("link", name="Runs", exact=True).first.click()
        page.locator('a[href="run?run=forked-off"]').first.click()
        at("forked-off")
        with half_drawn(page, "tilewright_now", "was-forked"):
            badge.first.click()
            expect(badge).to_have_count(0)
            expect(page.get_by_role("button", name="Pause")).to_have_count(0)  # it would pause the run that is left
        at("was-forked")
        page.go_back()
        at("forked-off")
        page.get_by_role("link", name="Runs", exact=True).first.click()
        page.locator('tr[data-id="forked-off"] a[href="run?run=was-forked"]').click()
        at("was-forked")
        page.get_by_role("link", name="Runs", exact=True).last.click()
        page.locator('a[href="run?run=forked-off"]').first.click()
        at("forked-off")
    child.emit(ev.RunEnded(RunState.FINISHED, "done", "c001"))
    child.die()
    expect(page.get_by_text("No engine is running")).to_be_visible()
    badge.first.click()
    at("was-forked")
    page.get_by_role("button", name="Pause").click()
    assert parent.next_command().kind is CommandKind.PAUSE, "what was clicked is the one command there is"
    assert child.asked() == []
