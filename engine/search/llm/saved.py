"""What a model's name stands for: an entry of models.toml, or an endpoint's own name. Knows keys, no client."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from engine.errors import ModelError
from engine.search.llm import environment
from storage import keys
from storage.keys import KeyStoreError
from storage.run.models import ModelOptions, ModelRole, for_role
from storage.run.saved_models import SavedModel

KeyIn = Callable[[str | None, str], str]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An endpoint to connect to: its options hold the model's name there."""

    options: ModelOptions
    address: str
    key: str


def endpoint_of(options: ModelOptions, entry: SavedModel | None, key_in: KeyIn = environment.key_in) -> Endpoint:
    """The endpoint that options name, with those of the saved entry where they say nothing.

    A saved key goes to the entry's own address alone.

    Raises:
        ModelError: its key is missing.
    """
    if entry is None or entry.endpoint is None:
        address = options.base_url or environment.configured_address()
        return Endpoint(options, address, key_in(options.key_variable, address))
    own = replace(entry.endpoint, role=ModelRole.ALL)
    merged = for_role((own, replace(options, model=None)), options.role)
    address = merged.base_url or environment.OPENAI
    is_elsewhere = address != (own.base_url or environment.OPENAI)
    if options.key_variable is None and not is_elsewhere and entry.key is not None:
        return Endpoint(merged, address, _saved_key(entry))
    variable = options.key_variable or (None if is_elsewhere else own.key_variable)
    usual = None if address == environment.OPENAI else environment.NO_KEY
    return Endpoint(merged, address, key_in(variable or usual, address))


def _saved_key(entry: SavedModel) -> str:
    assert entry.key is not None
    try:
        key = keys.find(entry.name, entry.key)
    except KeyStoreError as error:
        raise ModelError(f"the key of model {entry.name} cannot be read: {error}") from error
    if key is None:
        raise ModelError(
            f"the key of model {entry.name} is gone: save the model again on the page Models, or name another model"
        )
    return key
