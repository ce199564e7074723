"""One small question to an endpoint, to see whether a run could use it: asked again when a run would ask again. Knows
no run; changes nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from engine.errors import CallError, ModelError
from engine.search.llm import Completion, LanguageModel, Message, Purpose, environment
from engine.search.llm.prices import FILE, Price, read_prices
from engine.search.llm.retrying import pause_before_next
from storage.home import home
from storage.run.models import ModelOptions, ModelRole, Options, for_role

QUESTION = "Reply with the single word: ready"
ROOM = 2_000  # tokens; a model that reasons spends some before its first word
LIMIT_S = 60.0
Connect = Callable[[ModelOptions, str, str, Price | None], LanguageModel]


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


def try_model(model: str | None, options: Options, connect: Connect) -> Trial:
    """Ask the endpoint that options or the environment name for one word."""
    asked = for_role((*options, ModelOptions(timeout_s=LIMIT_S, silence_s=LIMIT_S)), ModelRole.WRITER)
    name = model or asked.model or environment.configured_model()
    address = asked.base_url or environment.configured_address()
    began = time.monotonic()
    try:
        key = environment.key_in(asked.key_variable, address)
        price = read_prices(home() / FILE).get(name)
        resolved = ModelOptions(
            ModelRole.WRITER, name, asked.base_url, asked.key_variable, asked.reasoning_effort, asked.temperature,
            LIMIT_S, LIMIT_S, asked.max_output, asked.window, asked.protocol,
        )  # fmt: skip
        purpose = Purpose("synthesise", None, 0, output_limit=asked.max_output or ROOM)
        reply = _ask(connect(resolved, address, key, price), purpose, began + LIMIT_S)
    except ModelError as error:
        return Trial(name, address, failure=str(error), seconds=time.monotonic() - began)
    if reply.finish_reason == "length":
        return Trial(name, address, _cut(reply), seconds=time.monotonic() - began)
    return Trial(
        name, address, "", reply.text.strip()[:200], reply.seconds, reply.input_tokens, reply.output_tokens,
        reply.cost_usd,
    )  # fmt: skip


def _ask(model: LanguageModel, purpose: Purpose, deadline: float) -> Completion:
    failed = list[CallError]()
    while True:
        try:
            return model.complete([Message("user", QUESTION)], purpose, lambda piece: None)
        except CallError as error:
            failed.append(error)
            pause = pause_before_next(failed, 0.0)
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
    return f"{trial.model} at {trial.address} replied {trial.reply!r} in {trial.seconds:.1f} s{counted}{cost}"
