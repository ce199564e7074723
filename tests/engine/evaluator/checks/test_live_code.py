"""What of a file never runs is left out, for whoever reads it and for whoever executes it; all else stays."""

from __future__ import annotations

import ast

import pytest

from engine.evaluator.checks.live_code import code, live

DEAD = "dead()"
LEFT_OUT = {
    "guard": "if __name__ == '__main__':\n    dead()",
    "guard the other way round": "if ('__main__' == __name__):\n    dead()",
    "guard that is not": "if __name__ != '__main__':\n    x = 1\nelse:\n    dead()",
    "guard after another test": "if x():\n    y()\nelif __name__ == '__main__':\n    dead()",
    "guard inside of a block": "try:\n    if __name__ == '__main__':\n        dead()\nfinally:\n    pass",
    "switched off": "if False:\n    dead()\nif 0:\n    dead()",
    "the task's own functions": "def get_inputs():\n    dead()\ndef get_init_inputs():\n    return [dead()]",
    "what the guard alone calls": "def main():\n    dead()\nif __name__ == '__main__':\n    main()",
    "what that calls": "async def a():\n    dead()\ndef b():\n    return a()\nif __name__ == '__main__':\n    b()",
    "what calls itself": "def a():\n    dead(), b()\ndef b():\n    a()",
    "name in another use": "import logging\nlog(__name__)\nif __name__ == '__main__':\n    dead()",
}
STAYS = {
    "else": "if __name__ == '__main__':\n    pass\nelse:\n    dead()",
    "guard that is not": "if __name__ != '__main__':\n    dead()",
    "guard with more": "if __name__ == '__main__' or True:\n    dead()",
    "guard of more": "if __name__ == '__main__' == x:\n    dead()",
    "guard on another name": "if __name__ == '__mp_main__':\n    dead()",
    "guard on an attribute": "if x.__name__ == '__main__':\n    dead()",
    "guard in a function": "def f():\n    if __name__ == '__main__':\n        x = 1\n    dead()\nf()",
    "name assigned": "__name__ = '__main__'\nif __name__ == '__main__':\n    dead()",
    "name assigned in a function": "def f():\n    global __name__\nif __name__ == '__main__':\n    dead()",
    "name in a loop": "for __name__ in ['__main__']:\n    if __name__ == '__main__':\n        dead()",
    "name by walrus": "(__name__ := '__main__')\nif __name__ == '__main__':\n    dead()",
    "name imported": "from x import y as __name__\nif __name__ == '__main__':\n    dead()",
    "everything imported": "from x import *\nif __name__ == '__main__':\n    dead()",
    "name of a class": "class __name__: pass\nif __name__ == '__main__':\n    dead()",
    "name of an error": "try:\n    x()\nexcept E as __name__:\n    pass\nif __name__ == '__main__':\n    dead()",
    "name matched": "match x:\n    case __name__:\n        pass\nif __name__ == '__main__':\n    dead()",
    "name by text": "f()['__name__'] = '__main__'\nif __name__ == '__main__':\n    dead()",
    "name as an attribute": "me.__name__ = '__main__'\nif __name__ == '__main__':\n    dead()",
    "called": "def get_inputs():\n    dead()\nx = get_inputs()",
    "called by a function that runs": "def get_inputs():\n    dead()\ndef f():\n    get_inputs()\nf()",
    "called by a method": "def get_inputs():\n    dead()\nclass A:\n    def f(self):\n        get_inputs()",
    "called by text": "def get_inputs():\n    dead()\nf('get_inputs')",
    "called as an attribute": "def get_inputs():\n    dead()\nme.get_inputs()",
    "called in an else": "def main():\n    dead()\nif __name__ == '__main__':\n    pass\nelse:\n    main()",
    "under another name": "def get_inputs():\n    dead()\nf = get_inputs",
    "decorator": "@dead()\ndef get_inputs():\n    pass",
    "decorated": "@now\ndef get_inputs():\n    dead()",
    "default argument": "def get_inputs(x=dead(), *, y=dead()):\n    pass",
    "annotation": "def get_inputs(x: dead()):\n    pass",
    "class body": "class A:\n    dead()",
    "method": "class A:\n    def get_inputs(self):\n        dead()",
    "called by Python": "def __getattr__(name):\n    dead()",
}


@pytest.mark.parametrize("source", LEFT_OUT.values(), ids=LEFT_OUT)
def test_what_never_runs_is_left_out(source: str) -> None:
    assert DEAD not in ast.unparse(live(ast.parse(source)))


@pytest.mark.parametrize("source", STAYS.values(), ids=STAYS)
def test_what_may_run_stays(source: str) -> None:
    assert DEAD in ast.unparse(live(ast.parse(source)))


@pytest.mark.parametrize("source", [*LEFT_OUT.values(), *STAYS.values()], ids=[*LEFT_OUT, *STAYS])
def test_the_rest_keeps_its_lines(source: str) -> None:
    left = {
        ast.dump(node, include_attributes=True) for node in ast.walk(live(ast.parse(source))) if hasattr(node, "id")
    }
    assert left <= {ast.dump(node, include_attributes=True) for node in ast.walk(ast.parse(source))}


def test_what_was_left_out_does_not_run_even_where_it_would() -> None:
    ran: list[str] = []
    text = "def get_inputs():\n    ran.append('function')\nif __name__ == '__main__':\n    ran.append('guard')\n"
    names = {"__name__": "__main__", "ran": ran}
    exec(code(text, "candidate.py"), names)
    names["get_inputs"]()  # type: ignore[operator]
    assert ran == []


@pytest.mark.parametrize("text", ["if __name__ == '__main__':\n    return 1", "def f():\n    break", "x = ("])
def test_python_refuses_what_it_would_refuse(text: str) -> None:
    with pytest.raises(SyntaxError) as caught:
        code(text, "candidate.py")
    assert caught.value.filename == "candidate.py"
