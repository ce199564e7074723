import pytest

from storage.run.models import ModelRole, PatchForm, for_role, read_options


def test_a_role_has_its_own_options_and_otherwise_those_of_all() -> None:
    options = read_options(
        "temperature=0.2\n# a remark\n\ndiagnoser.model = small\ndiagnoser.temperature=0\npatches=tool"
    )
    diagnoser, writer = for_role(options, ModelRole.DIAGNOSER), for_role(options, ModelRole.WRITER)
    assert (diagnoser.model, diagnoser.temperature, diagnoser.patches) == ("small", 0.0, PatchForm.TOOL)
    assert (writer.model, writer.temperature, writer.window) == (None, 0.2, None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nonsense", "ROLE"),
        ("painter.model=x", "unknown role 'painter'"),
        ("temperature=hot", "a number"),
        ("timeout_s=0", "above 0"),
        ("timeout_s=inf", "a number"),
        ("protocol=smoke", "auto, chat, responses"),
        ("base_url=localhost", "http"),
        ("base_url=http://me:secret-word@host/v1", "no password"),
        ("base_url=http://host/v1?key=secret-word", "no password"),
        ("key_variable=sk-secret-word", "never the key itself"),
        ("model=", "needs a value"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused_without_quoting_what_may_be_a_secret(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        read_options(text)
    assert "secret-word" not in str(caught.value)
