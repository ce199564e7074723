"""Private names of Streamlit and httpx2: each in one module, which says for which version it was written."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import httpcore2
import httpx2
import pytest
import streamlit.auth_util
import uvicorn
from streamlit.components.v2.bidi_component import serialization
from streamlit.runtime.fragment import MemoryFragmentStorage
from streamlit.runtime.scriptrunner.script_runner import ScriptRunner
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData, ScriptRequests
from streamlit.web.server.starlette import starlette_app_utils, starlette_server_config

from engine.errors import ModelError
from engine.search.llm import watched_client
from engine.search.llm.watched_client import Watch, WatchedBackend
from pages.parts import streamlit_internals
from tests.test_layers import ROOT, imports, within

LIMITS = httpx2.Timeout(1.0)


@dataclass(frozen=True, slots=True)
class Adapter:
    """A module that knows private names of `package`: for which version it was written, and what it takes for granted.

    `shapes` has names with the signature or the value that they are expected to have, and what they have.
    """

    module: str
    package: str
    written_for: str
    pinned: str
    installed: str
    shapes: Mapping[str, tuple[str, str]]


def pin(package: str) -> str:
    """The version in requirements.txt."""
    found = re.search(rf"^{package}==(\S+)$", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    return found[1] if found else "no version"


def adapter(module: ModuleType, package: str, shapes: Mapping[str, tuple[str, str]]) -> Adapter:
    file = str(Path(str(module.__file__)).relative_to(ROOT))
    return Adapter(file, package, vars(module)["WRITTEN_FOR"], pin(package), version(package), shapes)


def shape(known: object) -> str:
    return str(inspect.signature(known)) if callable(known) else repr(known)


def shapes_of_a_client() -> dict[str, tuple[str, str]]:
    client = httpx2.Client()
    transport = client._transport
    pool = vars(transport).get("_pool")
    backend = vars(pool).get("_network_backend") if pool else None
    return {
        "Client._mounts": ("{}", shape(client._mounts)),
        "Client._transport": ("HTTPTransport", type(transport).__name__),
        "Client._transport._pool": ("ConnectionPool", type(pool).__name__),
        "Client._transport._pool._network_backend": ("True", str(isinstance(backend, httpcore2.NetworkBackend))),
    }


def adapters() -> list[Adapter]:
    auth, utils = streamlit.auth_util, starlette_app_utils
    cookie = "(get_single_cookie_fn: 'Callable[[str], bytes | None]', cookie_name: 'str') -> 'bytes | None'"
    decode = "(secret: 'str', name: 'str', value: 'str | bytes', max_age_days: 'float' = 31.0) -> 'bytes | None'"
    of_streamlit = {
        "auth_util.get_cookie_with_chunks": (cookie, shape(auth.get_cookie_with_chunks)),
        "auth_util.get_origin_from_redirect_uri": ("() -> 'str | None'", shape(auth.get_origin_from_redirect_uri)),
        "auth_util.get_secrets_auth_section": ("() -> 'AttrDict'", shape(auth.get_secrets_auth_section)),
        "auth_util.get_signing_secret": ("() -> 'str'", shape(auth.get_signing_secret)),
        "starlette_app_utils.decode_signed_value": (decode, shape(utils.decode_signed_value)),
        "starlette_server_config.USER_COOKIE_NAME": (
            "'_streamlit_user'", shape(starlette_server_config.USER_COOKIE_NAME),
        ),
        "serialization.is_dataframe_like": (
            "(obj: 'object') -> 'bool'", shape(vars(serialization)["is_dataframe_like"]),
        ),
        "text_widgets.time_to_seconds": (
            "(t: 'float | timedelta | str | None', *, coerce_none_to_inf: 'bool' = True) -> 'float | None'",
            shape(streamlit.time_util.time_to_seconds),
        ),
        "ScriptRunner._run_script": (
            "(self, rerun_data: 'RerunData') -> 'None'", shape(vars(ScriptRunner)["_run_script"]),
        ),
        "FragmentStorage.contains": ("(self, key: 'str') -> 'bool'", shape(MemoryFragmentStorage.contains)),
        "ScriptRequests.request_rerun": (
            "(self, new_data: 'RerunData') -> 'bool'", shape(vars(ScriptRequests)["request_rerun"]),
        ),
        "ScriptRequests._state": ("<ScriptRequestType.CONTINUE: 'CONTINUE'>", shape(vars(ScriptRequests())["_state"])),
        "ScriptRequests._rerun_data": ("RerunData", type(vars(ScriptRequests())["_rerun_data"]).__name__),
        "RerunData.fragment_id_queue": ("[]", shape(RerunData().fragment_id_queue)),
        "uvicorn.Server.handle_exit": ("(self, sig: 'int', frame: 'FrameType | None') -> 'None'",
                                       shape(uvicorn.Server.handle_exit)),
    }  # fmt: skip
    return [
        adapter(streamlit_internals, "streamlit", of_streamlit),
        adapter(watched_client, "httpx2", shapes_of_a_client()),
        adapter(watched_client, "httpcore2", {}),
    ]


def complaints(one: Adapter) -> list[str]:
    """What has changed under a module, one plain sentence each."""
    do = f"see that {one.module} still does what it says, then change it and this test"
    found = [
        f"{one.module} was written for {one.package} {one.written_for}, but {where} {there}: {do}"
        for where, there in (("requirements.txt pins", one.pinned), ("installed is", one.installed))
        if there != one.written_for
    ]
    return found + [
        f"{name} of {one.package} {one.installed} is {now}, and {one.module} expects {expected}: {do}"
        for name, (expected, now) in one.shapes.items()
        if now != expected
    ]


@pytest.mark.parametrize("one", adapters(), ids=lambda one: one.package)
def test_what_a_module_knows_of_a_package_is_as_it_was(one: Adapter) -> None:
    assert complaints(one) == []


def test_another_version_or_another_shape_is_told_in_a_sentence() -> None:
    one = Adapter("a.py", "p", "1.0", "1.0", "1.0", {"p.f": ("()", "()")})
    assert complaints(one) == []
    assert complaints(replace(one, installed="1.1")) == [
        "a.py was written for p 1.0, but installed is 1.1: see that a.py still does what it says, then change it and "
        "this test"
    ]
    assert "requirements.txt pins no version" in complaints(replace(one, pinned="no version"))[0]
    assert complaints(replace(one, shapes={"p.f": ("()", "(x)")}))[0].startswith(
        "p.f of p 1.0 is (x), and a.py expects"
    )


def test_a_streamlit_without_these_names_is_told_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(streamlit.auth_util, "get_signing_secret")
    spec = importlib.util.spec_from_file_location("again", streamlit_internals.__file__)
    assert spec is not None
    assert spec.loader is not None
    with pytest.raises(ImportError, match=r"lacks what again needs.*get_signing_secret.*requirements\.txt"):
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def test_a_part_of_a_page_that_is_left_is_neither_drawn_nor_joined_with_the_next_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn = list[list[str]]()

    class Runner:
        def __init__(self) -> None:
            self._fragment_storage = MemoryFragmentStorage()

        def _run_script(self, rerun_data: RerunData) -> None:
            drawn.append(rerun_data.fragment_id_queue)

    class Requests(ScriptRequests):
        request_rerun = ScriptRequests.request_rerun

    monkeypatch.setattr(streamlit_internals, "ScriptRunner", Runner)
    monkeypatch.setattr(streamlit_internals, "ScriptRequests", Requests)
    streamlit_internals.draw_no_part_of_a_page_that_was_left()
    Runner()._run_script(RerunData(fragment_id_queue=["of the page before"]))
    Runner()._run_script(RerunData())
    assert drawn == [[]]
    requests = Requests()
    assert requests.request_rerun(RerunData(page_script_hash="next"))
    assert requests.request_rerun(RerunData(page_script_hash="left", fragment_id="of it"))
    assert vars(requests)["_rerun_data"].page_script_hash == "next"


def test_every_connection_of_a_client_is_watched_through_a_proxy_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "example.org")
    client = watched_client.watched_client(Watch(), LIMITS)
    transports = [client._transport, *(one for one in client._mounts.values() if one is not None)]
    assert len(transports) == 2
    assert all(isinstance(vars(one)["_pool"]._network_backend, WatchedBackend) for one in transports)


@pytest.mark.parametrize("missing", ["_mounts", "_pool", "_network_backend"])
def test_a_client_that_cannot_be_watched_is_not_used(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    def other(**options: object) -> httpx2.Client:
        client = httpx2.Client()
        pool = vars(client._transport)["_pool"]
        owner = {"_mounts": client, "_pool": client._transport, "_network_backend": pool}[missing]
        delattr(owner, missing)
        return client

    class Httpx2:
        Client = staticmethod(other)
        create_ssl_context = staticmethod(httpx2.create_ssl_context)

    monkeypatch.setattr(watched_client, "httpx2", Httpx2)
    with pytest.raises(ModelError, match=f"keeps its connections elsewhere.*{missing}.*requirements.txt"):
        watched_client.watched_client(Watch(), LIMITS)


# Documented, or what a documented function returns.
PUBLIC = ("streamlit.errors", "streamlit.delta_generator")
OWNERS = {"streamlit": "pages/parts/streamlit_internals.py", "uvicorn": "pages/parts/streamlit_internals.py"}
OWNERS |= {"httpcore2": "engine/search/llm/watched_client.py"}
DOCUMENTED = [("engine/mcp_server/serving.py", "uvicorn")]  # nothing but what its documentation has


def test_only_these_modules_know_private_names_of_streamlit_and_httpx2() -> None:
    files = [ROOT / "app.py", ROOT / "serve.py"]
    files += [path for name in ("pages", "engine", "storage") for path in sorted((ROOT / name).rglob("*.py"))]
    bad = []
    for path in files:
        name = str(path.relative_to(ROOT))
        for module in imports(path):
            package = module.partition(".")[0]
            is_public = module == "streamlit" or within(module, *PUBLIC) or (name, module) in DOCUMENTED
            if OWNERS.get(package, name) != name and not is_public:
                bad.append(f"{name} imports {module}")
        if name not in OWNERS.values() and (path.parent == ROOT or name.startswith(("pages/", "engine/search/llm/"))):
            bad += [f"{name} uses {used}" for used in private_attributes(path)]
    assert bad == []


INDUCTOR, PRIVATE = "engine/evaluator/processes/compiler_source.py", "torch._inductor"


def test_only_one_module_knows_private_names_of_inductor_and_they_are_there() -> None:
    asked = [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "engine").rglob("*.py"))
        if any(within(module, PRIVATE) for module in imports(path))
    ]
    packaged = "engine/packaging/template/package/_fused.py"
    scaled = "engine/evaluator/processes/scaled_products.py"
    assert asked == [INDUCTOR, scaled, "engine/networks/compiled.py", packaged]
    folder = Path(str(importlib.util.find_spec("torch").origin)).parent / "_inductor"  # type: ignore[union-attr]
    for file, names in {
        "__init__.py": ("def compile(", "    options: dict[str, Any] | None = None,", "def list_mode_options("),
        "utils.py": ("def run_and_get_code(", "return result, list(source_codes)"),
        "async_compile.py": ("    def cpp_pybinding(self, argtypes", "CppPythonBindingsCodeCache.load_pybinding("),
        "compile_fx.py": ("def compile_fx(", "torch._inductor.debug.dump_inductor_provenance_info()"),
        "debug.py": ("_inductor_triton_kernel_to_post_grad_node_info: dict[str, list[str]]",),
        "codecache.py": ("class PyCodeCache", "    modules: list[ModuleType] = []", "cls.modules.append(mod)"),
        "cpu_vec_isa.py": ("supported_vec_isa_list = ",), "runtime/triton_heuristics.py": ("launcher.config = ",),
        "custom_graph_pass.py": ("class CustomGraphPass(",), "config.py": ("post_grad_custom_pre_pass: ",),
        "runtime/triton_helpers.py": ("@triton.jit\ndef welford_combine(",),
    }.items():  # fmt: skip
        text = (folder / file).read_text()
        assert [name for name in names if name not in text] == [], f"of {file}: see that {INDUCTOR} still does its work"


def private_attributes(path: Path) -> list[str]:
    """Names with an underscore of something that is not the object itself."""
    return [
        ast.unparse(node)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and re.match(r"_[^_]", node.attr)
        and ast.unparse(node.value) not in ("self", "cls")
        and ast.unparse(node) != "os._exit"
    ]
