"""Read-only routes for machines: runs, kernels, events, sources. Documented in docs/api.md; nothing can be written."""

from __future__ import annotations

import re
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pages.parts import change_token, index
from pages.parts.api import api_answers
from pages.parts.api.api_answers import LONGEST_PAGE, ApiError
from storage.index import queries
from storage.index.queries import Archive, RunFilter, RunRow, RunSort
from storage.run import folder
from storage.run.blobs import Blobs
from storage.run.settings import RunState

Handler = Callable[[Request], Response]
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
PAGE = 50


def get_runs(request: Request) -> Response:
    """Runs, newest first. `state`, `task`, `model`, `strategy`, `tag`, `text` and `archive` leave in, `sort` orders,
    `limit` and `offset` page."""
    query = request.query_params
    limit, offset = api_answers.number(request, "limit", PAGE, LONGEST_PAGE), api_answers.number(request, "offset", 0)
    state, sort = query.get("state", ""), query.get("sort", str(RunSort.NEWEST))
    _one_of("state", state, ["", *RunState])
    _one_of("sort", sort, list(RunSort))
    archive = query.get("archive", str(Archive.ALL))
    _one_of("archive", archive, list(Archive))
    etag = api_answers.tag(request, change_token.of([], is_overview=True) + str(api_answers.lost_runs()))
    if api_answers.is_known(request, etag):
        return api_answers.unchanged(etag)
    task, model, text, strategy, tag = (query.get(key, "") for key in ("task", "model", "text", "strategy", "tag"))
    chosen = RunFilter(state, task, model, text, strategy, tag, Archive(archive))
    runs, total = api_answers.listed(chosen, RunSort(sort), limit, offset)
    has_more = bool(runs) and offset + len(runs) < total
    following = str(request.url.include_query_params(offset=offset + limit)) if has_more else None
    following = following and "/api/runs?" + following.partition("?")[2]
    page = {"total": total, "limit": limit, "offset": offset, "next": following, "runs": runs}
    return api_answers.answer(page | {"not_followed": index.ingest().failures}, etag)


def get_run(request: Request) -> Response:
    """One run with settings, depths and kernels."""
    run = _run(request)
    etag = api_answers.tag(request, change_token.of([run.run_id], is_overview=False))
    if api_answers.is_known(request, etag):
        return api_answers.unchanged(etag)
    return api_answers.answer(api_answers.whole(run), etag)


def get_events(request: Request) -> Response:
    """Journal events after number `since`, oldest first; `next` is what to ask with the next time."""
    run_id = _run(request).run_id
    since = api_answers.number(request, "since", 0)
    limit = api_answers.number(request, "limit", 500, LONGEST_PAGE)
    etag = api_answers.tag(request, change_token.of([run_id], is_overview=False))
    if api_answers.is_known(request, etag):
        return api_answers.unchanged(etag)
    rows = queries.events(index.current(), run_id, since, limit + 1)
    shown = rows[:limit]
    last = shown[-1].seq if shown else since
    body = {"run": run_id, "since": since, "next": last, "has_more": len(rows) > limit}
    return api_answers.answer(body | {"events": api_answers.events(shown)}, etag)


def get_kernel(request: Request) -> Response:
    """One kernel with its evaluation and checks."""
    run_id, name = _run(request).run_id, request.path_params["kernel"]
    etag = api_answers.tag(request, change_token.of([run_id], is_overview=False))
    if api_answers.is_known(request, etag):
        return api_answers.unchanged(etag)
    kernel = api_answers.whole_kernel(run_id, name)
    if kernel is None:
        raise ApiError(404, f"run {run_id} has no kernel {name[:60]!r}", f"/api/runs/{run_id} lists its kernels")
    return api_answers.answer(kernel, etag)


def get_source(request: Request) -> Response:
    """The source of a kernel, byte for byte."""
    run_id, name = _run(request).run_id, request.path_params["kernel"]
    return _source(request, run_id, name, f"{run_id}-{name}.py")


def get_best(request: Request) -> Response:
    """The source of the best kernel so far, as a file."""
    run = _run(request)
    if run.best_candidate_id is None:
        raise ApiError(404, f"run {run.run_id} has no correct kernel yet", "ask again when it has: `best` of the run")
    return _source(request, run.run_id, run.best_candidate_id, f"{run.task_name}-{run.best_candidate_id}.py")


def get_metrics(_request: Request) -> Response:
    """Figures for Prometheus."""
    return Response(
        api_answers.prometheus_text(), media_type=api_answers.MEDIA_TYPE, headers={"Cache-Control": "no-store"}
    )


def get_nothing(request: Request) -> Response:
    """Anything else under /api."""
    raise ApiError(
        404, f"there is nothing at {request.url.path[:200]}", "docs/api.md lists the routes; begin at /api/runs"
    )


def _source(request: Request, run_id: str, name: str, file_name: str) -> Response:
    row = queries.candidate(index.current(), run_id, name)
    if row is None:
        raise ApiError(404, f"run {run_id} has no kernel {name[:60]!r}", f"/api/runs/{run_id} lists its kernels")
    etag = f'"{row.source_blob}"'
    if api_answers.is_known(request, etag):
        return api_answers.unchanged(etag)
    try:
        source = Blobs(folder.find_run(run_id).blobs).get(row.source_blob)
    except FileNotFoundError:
        raise ApiError(
            404, f"the source of {name} is missing", "look into the run's folder: a blob was deleted"
        ) from None
    # Served as a download of plain text: a model wrote it, and no browser may take it for a page.
    safe = re.sub(r"[^A-Za-z0-9._-]", "_", file_name)
    headers = {"ETag": etag, "Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff"}
    headers["Content-Disposition"] = f'attachment; filename="{safe}"'
    return Response(source.encode("utf-8", "surrogatepass"), 200, headers, "text/plain; charset=utf-8")


def _run(request: Request) -> RunRow:
    name = request.path_params["run"]
    row = queries.run(index.current(), name)
    if row is None:
        raise ApiError(404, f"there is no run {name[:130]!r}", "/api/runs lists the runs; a new one takes a second")
    return row


def _one_of(name: str, value: str, allowed: list[str]) -> None:
    if value not in allowed:
        choices = ", ".join(str(choice) for choice in allowed if choice)
        raise ApiError(400, f"{name}={value[:40]!r} is not known", f"{name} takes one of {choices}")


def _readable(handler: Handler) -> Handler:
    """GET and HEAD only, and errors as JSON."""

    def handle(request: Request) -> Response:
        try:
            if request.method not in ("GET", "HEAD"):
                raise ApiError(405, f"{request.method} is not possible", "this interface only reads: use GET or HEAD")
            return handler(request)
        except ApiError as error:
            response = error.response()
            if error.status == 405:
                response.headers["Allow"] = "GET, HEAD"
            return response

    return handle


ROUTES = [
    Route(path, _readable(handler), methods=METHODS)
    for path, handler in (
        ("/api/runs", get_runs),
        ("/api/runs/{run}", get_run),
        ("/api/runs/{run}/events", get_events),
        ("/api/runs/{run}/kernels/{kernel}", get_kernel),
        ("/api/runs/{run}/kernels/{kernel}/source", get_source),
        ("/api/runs/{run}/best", get_best),
        ("/api/{rest:path}", get_nothing),
        ("/metrics", get_metrics),
    )
]
