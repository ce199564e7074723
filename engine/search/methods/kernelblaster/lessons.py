"""What a run teaches the knowledge base, as revisions: a discovered state, a technique that a plan proposed, the edits
after a round. Pure: names, times and authors are filled in by the loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from storage.knowledge.records import Advised, Bottleneck, Category, Prior, Revision, State, Technique

UNKNOWN_GAIN, UNKNOWN_CONFIDENCE = 1.0, 0.5


def _revision(why: str, **changed: Any) -> Revision:
    return Revision("new", 0.0, "a run", why, **changed)


def of_state(state: State) -> Revision:
    """A state that was discovered; it inherits the nearest one."""
    return _revision(f"discovered the state {state.name}, nearest to {state.inherits}: {state.about}", states=(state,))


def of_technique(advised: Advised, state: str, *, is_known: bool) -> Revision | None:
    """A technique that a plan proposed for a kernel in this state, and what it expects of it there.

    One that the base knows from other states stays as it is described there. None where nothing is left to teach.
    """
    technique = Technique(advised.technique, advised.category, advised.about, advised.helps, advised.hurts)
    priors = (Prior(state, advised.technique, advised.expected_gain, advised.confidence),) if state else ()
    where = f" in the state {state}" if state else ""
    if is_known and not priors:
        return None
    techniques = () if is_known else (technique,)
    return _revision(f"the plan proposed {advised.technique}{where}", techniques=techniques, priors=priors)


def of_round(edits: Sequence[Mapping[str, Any]], expected: Mapping[tuple[str, str], Advised]) -> Revision:
    """The edits after a round. What a prediction edit does not name stays as the base last told it."""
    states, techniques, priors = list[State](), list[Technique](), list[Prior]()
    for edit in edits:
        match edit["edit"]:
            case "prediction":
                priors.append(_prior(edit, expected.get((edit["state"], edit["technique"]))))
            case "technique" | "composite":
                parts = tuple(edit.get("parts", ()))
                words = edit["about"], edit["helps"], edit["hurts"]
                techniques.append(Technique(edit["technique"], Category(edit["category"]), *words, parts=parts))
                priors.append(_prior(edit, None))
            case "state":
                bottleneck, inherits = Bottleneck(edit["bottleneck"]), edit["inherits"]
                states.append(State(edit["state"], bottleneck, edit["about"], is_discovered=True, inherits=inherits))
            case "deprecation":
                techniques.append(_deprecated(edit["technique"], expected))
    why = "; ".join(f"{edit['edit']} {edit.get('technique') or edit['state']}: {edit['why']}" for edit in edits)
    return _revision(why, states=tuple(states), techniques=tuple(techniques), priors=tuple(priors))


def _prior(edit: Mapping[str, Any], advised: Advised | None) -> Prior:
    gain = edit.get("gain", advised.expected_gain if advised else UNKNOWN_GAIN)
    confidence = edit.get("confidence", advised.confidence if advised else UNKNOWN_CONFIDENCE)
    return Prior(edit["state"], edit["technique"], gain, confidence)


def _deprecated(name: str, expected: Mapping[tuple[str, str], Advised]) -> Technique:
    """The technique as it is known, out of use."""
    advised = next((advice for (_, technique), advice in expected.items() if technique == name), None)
    if advised is None:
        return Technique(name, Category.GENERAL, "", is_disabled=True)
    return Technique(
        name, advised.category, advised.about, advised.helps, advised.hurts, parts=advised.parts, is_disabled=True
    )
