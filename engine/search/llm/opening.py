"""The models of a run: its own, and any that a person names while it works. Knows keys, not what is behind one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from engine.errors import EngineError
from engine.search.llm import Completion, LanguageModel, Message, OnText, Purpose, Terms, environment
from engine.search.llm.manual import ManualModel
from engine.search.llm.prices import FILE, Price, read_prices
from engine.search.llm.saved import endpoint_of
from storage.home import home
from storage.run import saved_models
from storage.run.models import ModelOptions, ModelRole, Options, for_role
from storage.run.saved_models import RECORDED, SavedModel, SavedModelError
from storage.run.settings import RunSettings
from storage.run.steering.command_arguments import MANUAL, ModelChoice

PLAYED_BY: Mapping[str, ModelRole] = {
    "synthesise": ModelRole.WRITER,
    "optimise": ModelRole.WRITER,
    "diagnose": ModelRole.DIAGNOSER,
    "repair": ModelRole.REPAIRER,
    "judge": ModelRole.JUDGE,
}


class ModelsByRole:
    """Sends each call to the model of its role."""

    def __init__(self, models: Mapping[ModelRole, LanguageModel]) -> None:
        self._models = models
        self.name = models[ModelRole.WRITER].name

    def terms(self, purpose: Purpose) -> Terms | None:
        """The terms of the model that would answer."""
        return self._models[PLAYED_BY.get(purpose.role, ModelRole.WRITER)].terms(purpose)

    def complete(self, messages: list[Message], purpose: Purpose, on_text: OnText) -> Completion:
        """Answer the conversation."""
        return self._models[PLAYED_BY.get(purpose.role, ModelRole.WRITER)].complete(messages, purpose, on_text)


OnDivergence = Callable[[Purpose, bool, str], None]
Replay = Callable[[Path, float, OnDivergence], LanguageModel]
Connect = Callable[[ModelOptions, str, str, Price | None], LanguageModel]
RunProgram = Callable[[SavedModel, Price | None, float | None], LanguageModel]
"""A model that a program is: its entry, its price, and a time limit in the place of the entry's own."""


@dataclass(slots=True)
class Models:
    """The models of one run. Keys leave the environment when they are first used: no child can inherit them."""

    settings: RunSettings
    replay: Replay
    connect: Connect
    run_program: RunProgram
    on_divergence: OnDivergence = lambda purpose, is_bridged, reason: None
    _keys: dict[str, str] = field(default_factory=dict)
    _opened: dict[ModelChoice, LanguageModel] = field(default_factory=dict)

    def own(self) -> LanguageModel:
        """The model that the run was started with.

        Raises:
            EngineError: it cannot be asked here.
        """
        return self.open(ModelChoice(self.settings.model))

    def open(self, choice: ModelChoice) -> LanguageModel:
        """A model by name; asked for again it is the same one.

        Raises:
            EngineError: it cannot be asked here.
        """
        if choice not in self._opened:
            self._opened[choice] = self._open(choice)
        return self._opened[choice]

    def _open(self, choice: ModelChoice) -> LanguageModel:
        if choice.model == RECORDED:
            if self.settings.recording is None:
                raise EngineError(f"run {self.settings.run_id} has no recording: choose another model")
            return self.replay(Path(self.settings.recording), self.settings.reply_seconds, self._tell_divergence)
        return ManualModel() if choice.model == MANUAL else self._endpoints(choice)

    def _tell_divergence(self, purpose: Purpose, is_bridged: bool, reason: str) -> None:
        """To whoever listens by then: a model is opened before there is a journal to tell it to."""
        self.on_divergence(purpose, is_bridged, reason)

    def _endpoints(self, choice: ModelChoice) -> LanguageModel:
        """The endpoint of each role."""
        prices, models = read_prices(home() / FILE), dict[ModelRole, LanguageModel]()
        asked = _options_of(self.settings, choice)
        saved = {entry.name: entry for entry in self._saved(choice.model, asked)}
        for role in sorted(set(PLAYED_BY.values())):
            options = for_role(asked, role)
            name = options.model or choice.model
            models[role] = self._model(replace(options, model=name), saved.get(name), prices)
        environment.forget(set(self._keys) | {environment.KEY})
        return ModelsByRole(models)

    def _saved(self, model: str, options: Options) -> saved_models.Saved:
        """The saved models that are asked; those that the run began with are as they were then."""
        began_with = self.settings.saved_models
        try:
            by_name = {entry.name: entry for entry in saved_models.used_by(model, options, began_with)}
        except SavedModelError as error:
            raise EngineError(f"{error}") from error
        return tuple((by_name | {entry.name: entry for entry in began_with}).values())

    def _model(self, options: ModelOptions, entry: SavedModel | None, prices: Mapping[str, Price]) -> LanguageModel:
        if entry is not None and entry.program is not None:
            return self.run_program(entry, prices.get(entry.name), options.timeout_s)
        endpoint = endpoint_of(options, entry, self._key)
        return self.connect(endpoint.options, endpoint.address, endpoint.key, prices.get(endpoint.options.model or ""))

    def _key(self, variable: str | None, address: str) -> str:
        name = variable or environment.KEY
        if name not in self._keys:
            key = environment.key_in(variable, address)
            if key == environment.NO_KEY:
                return key
            self._keys[name] = key
        return self._keys[name]


def _options_of(settings: RunSettings, choice: ModelChoice) -> Options:
    """The run's options with the choice's on top; another model takes the place of every role's own."""
    options = settings.model_options
    if choice.model != settings.model:
        options = tuple(replace(option, model=None) for option in options)
    return (*options, *choice.options)
