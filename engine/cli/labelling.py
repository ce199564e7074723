"""The verbs by which people keep order among runs: label, mark, delete, undelete, examples."""

from __future__ import annotations

import json
import time
from argparse import Namespace
from dataclasses import replace

from engine import examples
from engine.cli.arguments.one_run import NO_MARK
from engine.cli.subcommands import OK
from engine.errors import EngineError
from engine.exporting.one_file import kernel_of, read_record
from engine.networks import examples as example_networks
from storage.networks import in_network
from storage.run import labels, trash
from storage.run.folder import find_run
from storage.run.labels import LabelError, Labels, MarkKind
from storage.run.trash import TrashError


def label_runs(options: Namespace) -> int:
    """Change the labels of runs and show them."""
    runs = [find_run(run_id) for run_id in options.run_ids]

    def changed(old: Labels) -> Labels:
        """What is asked for; asked for nothing, the labels stay as they are and nothing is written."""
        new = labels.with_tags(tuple(options.tags), tuple(options.untag))(old)
        new = new if options.name is None else replace(new, name=options.name)
        new = new if options.note is None else replace(new, note=options.note)
        return new if options.archived is None else replace(new, is_archived=options.archived)

    try:
        for run in runs:
            before = labels.read(run)
            after = before if changed(before) == before else labels.change(run, changed)
            print(f"{run.run_id}: {in_words(after)}")
    except LabelError as error:
        raise EngineError(str(error)) from error
    return OK


def mark_kernel(options: Namespace) -> int:
    """Say what a person found of a kernel; without a kind, show what was found of the run's kernels."""
    folder = find_run(options.run_id)
    record = read_record(folder)
    if options.kernel and not options.kind:
        raise EngineError(f"say what you found of kernel {options.kernel}: {', '.join(MarkKind)}, or {NO_MARK}")
    if options.kernel:
        kernel = kernel_of(folder, record, options.kernel)
        kind = None if options.kind == NO_MARK else MarkKind(options.kind)
        try:
            labels.change(folder, labels.marked(kernel.candidate_id, kind, options.note))
        except LabelError as error:
            raise EngineError(str(error)) from error
    found = sorted((record.number(mark.candidate_id), mark.in_words) for mark in labels.read(folder).marks)
    print("\n".join(f"kernel {number}: {words}" for number, words in found) or "No kernel of this run is marked.")
    return OK


def in_words(noted: Labels) -> str:
    """One run's labels on a line."""
    parts = [f"name {noted.name!r}" if noted.name else "", f"tags {', '.join(noted.tags)}" if noted.tags else ""]
    parts += ["archived" if noted.is_archived else "", f"note: {' '.join(noted.note.split())}" if noted.note else ""]
    return "; ".join(part for part in parts if part) or "no labels"


def delete_runs(options: Namespace) -> int:
    """Move runs to the trash; what has lain there too long is removed from the disk."""
    try:
        for run_id in options.run_ids:
            until = time.strftime("%Y-%m-%d %H:%M", time.localtime(trash.delete(run_id).final_at))
            print(f"Deleted {run_id}. Until {until} `undelete {run_id}` brings it back.")
        trash.empty()
    except TrashError as error:
        raise EngineError(str(error)) from error
    return OK


def undelete_runs(options: Namespace) -> int:
    """Bring runs back, or list those that can be."""
    try:
        for run_id in options.run_ids:
            print(f"Restored {trash.restore(run_id).run_id}.")
    except TrashError as error:
        raise EngineError(str(error)) from error
    for run in () if options.run_ids else trash.deleted_runs():
        print(f"{run.run_id}  deleted {time.strftime('%Y-%m-%d %H:%M', time.localtime(run.deleted_at))}")
    return OK


def run_examples(options: Namespace) -> int:
    """Run one of the verbs of `examples`."""
    verbs = {"list": list_examples, "open": open_examples, "remove": remove_examples, "pack": pack_example}
    return verbs[options.what](options)


def list_examples(options: Namespace) -> int:
    """The runs and networks that come with Tilewright."""
    shipped, networks = examples.shipped_examples(), example_networks.shipped()
    if options.json:
        print(json.dumps([*map(examples.plain, shipped), *map(example_networks.plain, networks)]))
        return OK
    for example in shipped:
        state = "open" if example.is_open else "-"
        print(f"{example.run_id}  {state:4} {example.labels.name or example.settings.task_name.replace('_', ' ')}")
        if example.labels.note:
            print(f"    {' '.join(example.labels.note.split())}")
    for one in networks:
        state = "open" if one.is_open else "-"
        print(f"{one.network.name}  {state:4} a network, {in_network.origin(one.network)}")
    if not shipped and not networks:
        print("No examples come with this copy.")
    return OK


def open_examples(options: Namespace) -> int:
    """Put examples beside the runs and networks that are here."""
    known = {one.network.name for one in example_networks.shipped()}
    names = [name for name in options.names if name in known] if options.names else sorted(known)
    run_ids = [name for name in options.names if name not in known]
    opened = examples.open_examples(run_ids) if run_ids or not options.names else []
    for run in opened:
        print(f"{run.run_id}: open. `python -m engine show {run.run_id}`")
    for name in names:
        try:
            example_networks.open_shipped(name)
        except EngineError as error:
            raise EngineError(f"the network {name} is not open: {error}; {len(opened)} runs are") from error
        print(f"{name}: open. `python -m engine network show {name}`")
    return OK


def remove_examples(options: Namespace) -> int:
    """Move the open examples to the trash."""
    gone, refused = examples.remove_examples()
    print(f"Removed {len(gone)} examples. `examples open` brings them back.")
    if refused:
        raise EngineError(f"{len(refused)} stay: {'; '.join(refused)}")
    return OK


def pack_example(options: Namespace) -> int:
    """Write runs that have ended as archives for others to open."""
    for run_id in options.run_ids:
        path = examples.pack(find_run(run_id))
        print(f"{path}: {path.stat().st_size:,} bytes")
    return OK
