"""What a person does about networks, each in a dialog: capture one, start runs for regions, search kernels for all that
are worth one, delete one. And how what is started without a dialog says that it did not start."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

import streamlit as st

from engine import supervisor
from engine.errors import EngineError
from engine.evaluator import tasks
from engine.networks import starting
from pages.parts import access, network_folders, number_field, suite_folders, wording
from pages.parts.new_run import budget_form
from pages.parts.new_run import setup as setup_form
from pages.parts.new_run.setup import Setup
from pages.parts.steering import dialogs, package_dialog, steer
from pages.parts.steering.dialogs import Dialog
from pages.parts.widgets import code
from storage.networks import files, ranking
from storage.networks.files import NetworkError, NetworkFolder
from storage.networks.records import Network, RegionRun
from storage.networks.standing import Standing
from storage.run.saved_models import RECORDED
from storage.run.settings import Budget
from storage.suites.standing import Suite

MODES = {"eval": "evaluation", "train": "training"}
NO_RECORDING = "Recorded replies exist for shipped tasks alone: choose another model."
NO_MODEL = "A search asks a language model, and none is connected: the page Models says how to connect one."
CALLS, MONEY = "model calls", "US dollars"
LIMITS = {CALLS: ("model_calls", "60", 1), MONEY: ("cost_usd", "2", 0.01)}
LIMIT_HELP = "Of all regions together. What the first steps leave of it goes where the network can still gain most."
MOST_REGIONS = 300
MOST_STEPS = 200
ENTRY_HELP = (
    "A file of yours and the function in it that returns the network and a list of workloads (name, weight, `args`, "
    "`kwargs`), as `/path/to/app.py:make`; or `package.module:make`; or `hf:` and the configuration of a transformers "
    "model."
)

TUNED_HELP = "Regions are then ranked against that mode too; on a GPU also against a CUDA graph of it."


def ask_capture() -> None:
    """Open the form of a new network."""
    dialogs.ask(Dialog.CAPTURE)


def ask_delete(name: str) -> None:
    """Open the question whether a network is to be deleted."""
    dialogs.ask(Dialog.DELETE_NETWORK, subject=name)


def ask_start(name: str, regions: Sequence[str]) -> None:
    """Open the form of runs for these regions."""
    dialogs.ask(Dialog.START_REGIONS, subject="\n".join([name, *regions]))


def ask_search(name: str) -> None:
    """Open the form of a search for a network's regions."""
    dialogs.ask(Dialog.SEARCH_KERNELS, subject=name)


def begin(start: Callable[[], object], words: str = "Starting") -> bool:
    """Start something; where it did not start, the reason with what it wrote. Whether it was started."""
    try:
        with st.spinner(words):
            start()
    except (EngineError, ValueError, OSError) as error:  # networks and suites that cannot be read are of ValueError
        said, _, log = str(error).partition("\n")
        st.error(wording.sentence(said), icon=":material/error:")
        if log:
            code.draw_plain("What it wrote", log, key="not_started", is_wrapped=True)
        return False
    return True


def draw() -> None:
    """Draw what is open; for the page itself, after its live part."""
    asked = dialogs.opened()
    if asked is None or not (access.may_steer() or asked.dialog is Dialog.SHIP):
        return
    if asked.dialog is Dialog.CAPTURE:
        _capture()
    elif asked.dialog is Dialog.DELETE_NETWORK:
        _delete(asked.subject)
    elif asked.dialog is Dialog.START_REGIONS:
        name, *regions = asked.subject.split("\n")
        _start(name, regions)
    elif asked.dialog is Dialog.SEARCH_KERNELS:
        _search(asked.subject)
    elif asked.dialog is Dialog.SHIP:
        package_dialog.of_network(asked.subject)


@st.dialog("New network", icon=":material/account_tree:", on_dismiss=dialogs.close)
def _capture() -> None:
    entry = st.text_input("Entry", key="network_entry", placeholder="/path/to/app.py:make", help=ENTRY_HELP)
    name = st.text_input("Name", key="network_name", placeholder="as the file is called")
    row = st.container(horizontal=True, gap="medium")
    mode = row.segmented_control(
        "Mode", list(MODES), default="eval", required=True, key="network_mode", format_func=MODES.__getitem__
    )
    devices = ["cpu", *(["cuda"] if not supervisor.available_toolchains().get("cuda", "none") else [])]
    device = row.segmented_control("Device", devices, default=devices[-1], required=True, key="network_device")
    wrong: list[str] = []
    numbers = _capture_numbers(entry.strip().startswith(starting.HUGGING_FACE), wrong)
    is_tuned = st.checkbox("Time max-autotune too, which takes minutes", key="network_tuned", help=TUNED_HELP)
    st.caption("The capture imports your file and calls your network, as you would. It may take minutes.")
    if dialogs.buttons("capture", "Capture", ":material/play_arrow:", may=not wrong):
        try:
            with st.spinner("Starting the capture"):
                folder = starting.capture_network(entry, name, str(mode), str(device), numbers, is_tuned=is_tuned)
        except EngineError as error:
            st.error(wording.sentence(str(error)), icon=":material/error:")
            return
        dialogs.forget()
        st.switch_page("networks.py", query_params={"network": folder.name})


def _capture_numbers(is_configuration: bool, wrong: list[str]) -> dict[str, int]:
    """How many calls of each region are kept; and of a configuration, which says nothing of inputs, how large those
    are."""
    fields = {"keep": ("Calls kept of each region", 2, "their tensors are what kernels are judged with")}
    if is_configuration:
        fields |= {"batch": ("Batch", 1, "of the inputs"), "tokens": ("Tokens", 256, "of each input")}
    columns = st.columns(3)
    return {
        option: int(number_field.draw(column, label, f"network_{option}", usual, 1, wrong, help=about) or usual)
        for (option, (label, usual, about)), column in zip(fields.items(), columns, strict=False)
    }


@st.dialog("Delete the network", icon=":material/delete:", on_dismiss=dialogs.close)
def _delete(name: str) -> None:
    try:
        folder = files.find(name)
    except NetworkError:
        dialogs.leave()
    size = dialogs.hold("size", lambda: files.size_of(folder))
    st.markdown(
        f"**{wording.plain(name)}** with its tasks and recorded tensors, {wording.quantity(float(size), 'B')}. This "
        "cannot be undone. Runs of its regions stay."
    )
    if dialogs.buttons("delete_network", "Delete", ":material/delete:"):
        try:
            files.delete(folder)
        except (NetworkError, OSError) as error:
            st.error(wording.sentence(str(error)), icon=":material/error:")
            return
        steer.say(f"Deleted network {name}.")
        dialogs.forget()
        st.switch_page("networks.py")


@st.dialog("Start runs", width="large", icon=":material/play_arrow:", on_dismiss=dialogs.close)
def _start(name: str, regions: Sequence[str]) -> None:
    try:
        folder = files.find(name)
        network = network_folders.read(folder).network
    except NetworkError:
        network = None
    if network is None:
        dialogs.leave()
        return
    st.markdown(f"**{wording.plain(', '.join(regions))}** of {wording.plain(name)}")
    st.caption(wording.plain(f"Captured on {network.device}."))
    setup, wrong = setup_form.draw(), list[str]()
    budget = budget_form.draw(setup, "", wrong)
    why_not = wrong[0] if wrong else NO_RECORDING if setup.model == RECORDED else ""
    if why_not:
        st.warning(wording.sentence(why_not), icon=":material/warning:")
    label = f"Start {wording.counted(len(regions), 'run')}"
    if dialogs.buttons("start_regions", label, ":material/play_arrow:", may=not why_not) and not why_not:
        _start_all(folder, network, regions, setup, budget)


def _start_all(folder: NetworkFolder, network: Network, regions: Sequence[str], setup: Setup, budget: Budget) -> None:
    """One after the other; where one cannot be started, those before it go on and the form stays for the others."""
    started: list[str] = []
    chosen = [region for region in network.regions if region.name in regions and region.task]
    try:
        for region in chosen:
            with st.spinner(f"Starting the run for {region.name}"):
                started.append(start(folder, region.name, str(folder.path / region.task), setup, budget))
    except (EngineError, OSError) as error:
        before = f"{wording.counted(len(started), 'run')} started before: {', '.join(started)}. " if started else ""
        st.error(wording.plain(before) + wording.sentence(str(error)), icon=":material/error:")
        ask_start(folder.name, [region.name for region in chosen[len(started) :]])
        return
    dialogs.forget()
    if len(started) == 1:
        st.switch_page("run.py", query_params={"run": started[0]})
    steer.say(f"Started {wording.counted(len(started), 'run')}.")
    st.rerun()


@st.dialog("Search kernels", icon=":material/manage_search:", on_dismiss=dialogs.close)
def _search(name: str) -> None:
    stands = _stands(name)
    if stands is None or stands.network is None:
        dialogs.leave()
        return
    worth = sum(row.is_worth_it for row in ranking.ranked(stands.network, stands.limits))
    suite, wrong = network_folders.suite_of(stands), list[str]()
    st.markdown(
        f"{wording.counted(worth, 'region')} of **{wording.plain(name)}** {'is' if worth == 1 else 'are'} worth a "
        "kernel. When the search ends, its kernels are put back and measured in the network."
    )
    top = number_field.draw_typed(
        st.container(), "Regions", "search_top", "", 1, wrong, MOST_REGIONS, may_be_empty=True,
        placeholder="all that are worth it", help="so many, the largest saving first",
    )  # fmt: skip
    kind = str(st.segmented_control("Limit", [CALLS, MONEY], default=CALLS, required=True, key="search_limit_kind"))
    limit, first, least = LIMITS[kind]
    number = number_field.draw_typed(
        st.container(), wording.capital(kind), f"search_limit:{kind}", first, least, wrong, help=LIMIT_HELP
    )
    settings, recordings = _settings(wrong) if suite is None else _as_before(suite)
    if wrong:
        st.warning(wording.plain(wrong[0]), icon=":material/warning:")
    if not dialogs.buttons("search_kernels", "Search", ":material/manage_search:", may=not wrong) or wrong:
        return
    limits = {} if number is None else {limit: number}
    if begin(lambda: starting.search_kernels(
        name, top=None if top is None else int(top), limits=limits, settings=settings, recordings=recordings
    )):  # fmt: skip
        steer.say(f"Kernels are being searched for network {name}.")
        dialogs.leave()


def _stands(name: str) -> Standing | None:
    try:
        return network_folders.read(files.find(name))
    except NetworkError:
        return None


def _settings(wrong: list[str]) -> tuple[str, str]:
    """What is asked of every region's run, as words of `engine run`: of a search that is new."""
    models = [model for model in supervisor.available_models() if model not in supervisor.FREE_MODELS]
    if not models:
        wrong.append(NO_MODEL)
        return "", ""
    left, right = st.columns(2)
    model = str(left.selectbox("Model", models, key="search_model"))
    steps = number_field.draw_typed(
        right, "Steps for each region", "search_steps", "6", 1, wrong, MOST_STEPS,
        help="of the search method; with what the limit leaves, regions with the most to gain get more",
    )  # fmt: skip
    return f"--model {shlex.quote(model)}" + (f" --depths {steps:g}" if steps else ""), ""


def _as_before(suite: Suite) -> tuple[str, str]:
    """Settings and recordings of the search that is gone on with: they cannot change any more."""
    words = suite.defined.settings.split(" ", 2)
    settings = " ".join(words[2:]) if words[0] == "--toolchain" else suite.defined.settings
    of_tasks = [shlex.split(task.settings) for task in suite.defined.tasks]
    recordings = next((str(Path(words[1]).parent) for words in of_tasks if words[:1] == ["--recording"]), "")
    spent = suite.spent
    told = f"`{settings}`" if settings else "recorded replies" if recordings else "the engine's own settings"
    st.caption(
        f"It goes on with the search that was begun, with {told}. Spent so far: "
        f"{wording.counted(spent.model_calls, 'model call')}, {wording.plain(suite_folders.cost(suite))}. The limit "
        "counts these too."
    )
    return settings, recordings


def start(folder: NetworkFolder, region: str, task: str, setup: Setup, budget: Budget) -> str:
    """Start a run for a region and note that in the network's folder; the run's id.

    Raises:
        EngineError: it cannot be started; the message says why.
        OSError: the folder may not be written.
    """
    settings = supervisor.new_settings(
        task, toolchain=setup.toolchain, model=setup.model, strategy=setup.strategy.name,
        options=setup.strategy.options, knowledge=setup.strategy.knowledge, language=setup.language,
        device=setup.device, budget=budget,
    )  # fmt: skip
    supervisor.see_that_money_can_be_kept(settings)
    supervisor.see_that_it_fits(settings, tasks.find(task))
    run_id = supervisor.start(settings).run_id
    files.append(folder, RegionRun(region, run_id))
    return run_id
