"""Any OpenAI-compatible chat endpoint, through the openai package. Knows the protocol, not what the text is about."""

from __future__ import annotations

import os
import time
from typing import cast

import openai
from openai.types import CompletionUsage
from openai.types.chat import ChatCompletionMessageParam

from engine.errors import ModelError
from engine.llm import Completion, Message, OnText, Purpose
from engine.llm.environment import configured_model, is_configured

TIMEOUT_S = 900.0


class EndpointModel:
    """Streams chat completions from the endpoint that OPENAI_BASE_URL names, with the key in OPENAI_API_KEY."""

    def __init__(self, model: str, client: openai.OpenAI) -> None:
        self.name = model
        self._client = client

    @classmethod
    def from_environment(cls, model: str | None = None) -> EndpointModel:
        """Use OPENAI_API_KEY, OPENAI_BASE_URL and TILEWRIGHT_MODEL; a local endpoint needs no key.

        Raises:
            ModelError: neither a key nor a base URL is set.
        """
        if not is_configured():
            raise ModelError("no model endpoint: set OPENAI_API_KEY (and OPENAI_BASE_URL for another provider)")
        key = os.environ.get("OPENAI_API_KEY") or "none"
        return cls(model or configured_model(), openai.OpenAI(api_key=key, timeout=TIMEOUT_S))

    def complete(self, messages: list[Message], purpose: Purpose, on_text: OnText) -> Completion:
        """One streamed chat completion.

        Raises:
            ModelError: the endpoint cannot be reached, refuses, or sends nothing.
        """
        started, pieces, finish, usage = time.monotonic(), list[str](), "", None
        try:
            stream = self._client.chat.completions.create(
                model=self.name,
                messages=cast(
                    list[ChatCompletionMessageParam], [{"role": m.role, "content": m.text} for m in messages]
                ),
                stream=True,
                stream_options={"include_usage": True},
            )
            with stream:
                for chunk in stream:
                    usage = chunk.usage or usage
                    for choice in chunk.choices[:1]:
                        finish = choice.finish_reason or finish
                        if choice.delta.content:
                            pieces.append(choice.delta.content)
                            on_text(choice.delta.content)
        except openai.OpenAIError as error:
            raise ModelError(f"the model endpoint failed: {error}") from error
        if not pieces:
            raise ModelError(f"{self.name} sent an empty reply (finish reason: {finish or 'none'})")
        return self._completion("".join(pieces), finish, time.monotonic() - started, usage)

    def _completion(self, text: str, finish: str, seconds: float, usage: CompletionUsage | None) -> Completion:
        cached = usage.prompt_tokens_details.cached_tokens if usage and usage.prompt_tokens_details else 0
        thought = usage.completion_tokens_details.reasoning_tokens if usage and usage.completion_tokens_details else 0
        return Completion(
            text=text,
            model=self.name,
            finish_reason=finish or "unknown",
            seconds=seconds,
            input_tokens=usage.prompt_tokens if usage else 0,
            output_tokens=usage.completion_tokens if usage else 0,
            cached_tokens=cached or 0,
            reasoning_tokens=thought or 0,
        )
