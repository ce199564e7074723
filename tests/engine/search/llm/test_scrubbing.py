from hypothesis import given
from hypothesis import strategies as st

from engine.search.llm.protocols import MARK, Scrubber

KEY = "sk-aab-aaab"


@given(st.lists(st.text("sk-ab x", max_size=8), max_size=8), st.integers(0, 8))
def test_a_secret_cut_anywhere_is_taken_out_and_nothing_else_is_lost(pieces: list[str], place: int) -> None:
    text = "".join(pieces[:place]) + KEY + "".join(pieces[place:])
    cuts = range(0, len(text), 3)
    scrubber = Scrubber([KEY])
    heard = "".join(scrubber.feed(text[cut : cut + 3]) for cut in cuts) + scrubber.rest()
    assert KEY not in heard
    assert heard == text.replace(KEY, MARK)


def test_a_word_too_short_to_be_a_secret_is_left() -> None:
    scrubber = Scrubber(["none", ""])
    assert scrubber.feed("none of it") + scrubber.rest() == "none of it"


def test_a_secret_in_an_address_is_found_too() -> None:
    assert Scrubber(["se/cret key"]).whole("http://x?key=se%2Fcret%20key") == f"http://x?key={MARK}"
