"""One small question to a model, to see whether a run could use it: asked again when a run would ask again, but not
where nobody listens, which a person wants to know at once. Knows no run; changes nothing."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from engine.errors import CallError, ModelError
from engine.search.llm import Completion, LanguageModel, Message, Purpose, environment
from engine.search.llm.opening import Connect, RunProgram
from engine.search.llm.prices import FILE, read_prices
from engine.search.llm.retrying import pause_before_next
from engine.search.llm.saved import Endpoint, KeyIn, endpoint_of
from storage import codec
from storage.home import home
from storage.run import saved_models
from storage.run.models import CallFailure, ModelOptions, ModelRole, Options, for_role
from storage.run.saved_models import SavedModel

WORD = "ready"
QUESTION = f"Reply with the single word: {WORD}"
ROOM = 2_000  # tokens; a model that reasons spends some before its first word
LIMIT_S = 60.0


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of it. `failure` is one sentence, empty where a reply came. None is unknown."""

    model: str
    address: str
    failure: str = ""
    reply: str = ""
    seconds: float = 0.0
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None

    @property
    def doubt(self) -> str:
        """What a reply other than the word asked for tells; empty for that word, whatever its case and punctuation."""
        if self.reply.strip(" \n\t.,!:*_`'\"“”").casefold() == WORD:
            return ""
        return f"that is not the word it was asked for, “{WORD}”: it may not follow instructions"


@dataclass(frozen=True, slots=True)
class Given:
    """A model that need not be saved yet, with a key of its own where it has one."""

    entry: SavedModel
    key: str | None = None


def given(text: bytes) -> Given:
    """What `codec.dumps` wrote of one.

    Raises:
        ModelError: it is none; the message does not quote it, since it holds a key.
    """
    try:
        stated: Given = codec.read_line(Given, text)
    except codec.DecodeError:
        raise ModelError("--given takes a model as JSON on standard input") from None
    return stated


def try_model(
    model: str | None, options: Options, connect: Connect, run_program: RunProgram, key: str | None = None,
    entry: SavedModel | None = None,
) -> Trial:  # fmt: skip
    """Ask the model that a name, options or the environment say for one word: the saved one of that name, or `entry`,
    which need not be saved yet; with `key`, where there is one, in the place of its own.
    """
    asked = for_role((*options, ModelOptions(timeout_s=LIMIT_S, silence_s=LIMIT_S)), ModelRole.WRITER)
    name = model or asked.model or environment.configured_model()
    address, began = asked.base_url or environment.configured_address(), time.monotonic()
    try:
        entry = entry or next((each for each in saved_models.used([name]) if each.name == name), None)
        prices = read_prices(home() / FILE)
        if entry is not None and entry.program is not None:
            address = entry.program.command[0]
            opened = run_program(entry, prices.get(entry.name), LIMIT_S)
        else:
            endpoint = _endpoint(replace(asked, model=name), entry, key)
            address, name = endpoint.address, endpoint.options.model or name
            opened = connect(endpoint.options, address, endpoint.key, prices.get(name))
        purpose = Purpose("synthesise", None, 0, output_limit=asked.max_output or ROOM)
        reply = _ask(opened, purpose, began + LIMIT_S)
    except (ModelError, saved_models.SavedModelError) as error:
        return Trial(name, address, failure=str(error), seconds=time.monotonic() - began)
    if reply.finish_reason == "length":
        return Trial(name, address, _cut(reply), seconds=time.monotonic() - began)
    return Trial(
        name, address, "", reply.text.strip()[:200], reply.seconds, reply.input_tokens, reply.output_tokens,
        reply.cost_usd,
    )  # fmt: skip


def _endpoint(options: ModelOptions, entry: SavedModel | None, key: str | None) -> Endpoint:
    """The endpoint as a run would ask it, within the limits of a trial."""

    def given(variable: str | None, address: str) -> str:
        return key or environment.NO_KEY

    key_in: KeyIn = environment.key_in if key is None else given
    if key is not None and entry is not None:
        entry = replace(entry, key=None)
    endpoint = endpoint_of(options, entry, key_in)
    return replace(endpoint, options=replace(endpoint.options, patches=None, timeout_s=LIMIT_S, silence_s=LIMIT_S))


def _ask(model: LanguageModel, purpose: Purpose, deadline: float) -> Completion:
    failed = list[CallError]()
    while True:
        try:
            return model.complete([Message("user", QUESTION)], purpose, lambda piece: None)
        except CallError as error:
            failed.append(error)
            pause = None if error.failure is CallFailure.UNREACHABLE else pause_before_next(failed, 0.0)
            if pause is None or time.monotonic() + pause > deadline:
                raise
            time.sleep(pause)


def _cut(completion: Completion) -> str:
    """Of a reply that is no whole one; of a model that reasons there may be no word at all."""
    spent = f"{completion.output_tokens:,} tokens" if completion.output_tokens else "the tokens that it had"
    text = completion.text.strip()
    what = f"was cut off after {spent}: {text[:80]!r}" if text else f"holds no answer: reasoning used up {spent}"
    return f"the reply {what}. Give it more with max_output"


def sentence(trial: Trial) -> str:
    """What came of a trial, for a terminal."""
    if trial.failure:
        return f"{trial.model} at {trial.address}: {trial.failure}"
    counted = "" if trial.input_tokens is None else f", {trial.input_tokens} tokens in, {trial.output_tokens or 0} out"
    cost = ", cost unknown (no price)" if trial.cost_usd is None else f", ${trial.cost_usd:.4f}"
    doubt = f"; {trial.doubt}" if trial.doubt else ""
    return f"{trial.model} at {trial.address} replied {trial.reply!r} in {trial.seconds:.1f} s{counted}{cost}{doubt}"
