"""Changes of what keeps a candidate honest: screening, isolation, timing."""

from __future__ import annotations

from benchmarks.mutation import TESTS, of

RULES = (f"{TESTS}/checks/screening/test_rules.py",)
SYMBOLS = (f"{TESTS}/checks/screening/test_library_symbols.py",)
OBSERVED = (f"{TESTS}/processes/test_observed.py",)
REFUSED = (f"{TESTS}/processes/test_observed.py", "-k", "what_is_refused or only_moves")
LAUNCHES = (f"{TESTS}/checks/test_launches.py",)
STRUCTURE = (f"{TESTS}/languages/test_structure.py",)
ISOLATION = (f"{TESTS}/sandbox",)
CLOCK = (f"{TESTS}/checks/test_clock.py",)
CONTENTS = (f"{TESTS}/checks/test_contents.py",)
MEMORY = (f"{TESTS}/machine/test_process_memory.py",)
REMEMBERING = (f"{TESTS}/checks/test_timing_checks.py", "-k", "explain")
SUSPICION = (f"{TESTS}/checks/test_suspicion.py",)
IDLE = (f"{TESTS}/processes/test_timing.py", "-k", "burns or left_running")
GATE = (f"{TESTS}/processes/test_gate.py",)
TRIALS = (
    f"{TESTS}/checks/test_trials.py",
    f"{TESTS}/processes/test_checking.py",
    "-k",
    "order_of_further or secret",
)

MUTATIONS = [
    *of(
        "checks/launches",
        LAUNCHES,
        ("if row.name in self.own or row.name.startswith(self.beginnings):", "if True:"),
        ("        if row.by:\n", "        if True:\n"),
        ("COPY if row.name.startswith(_COPIES) else", "COPY if True else"),
        ("        if not foreign:\n", "        if True:\n"),
        ("        if EVERYTHING in self.policy.library_operators:\n", "        if False:\n"),
        ("if trace.asks_the_host and _comes_from_host(trace):", "if False:"),
        ("if trace.asks_the_host and _comes_from_host(trace):", "if _comes_from_host(trace):"),
        ("row.name.startswith(_FROM_HOST) for", "True for"),
        ("        if not trace.attached:\n", "        if False:\n"),
        ('int(kernels["overwrites"]) > 0', "True"),
    ),
    *of(
        "checks/timing_checks",
        LAUNCHES,
        ("if low * (1 - SAME) <= speedup <= high * (1 + SAME) else []", "if True else []"),
        ("or not is_short(session, setting) or by_device(", "or by_device("),
        ("not setting.device.pairs or min(_medians(session)) >= LONG_MS", "not setting.device.pairs"),
        ("if waited > CROWDED:", "if False:"),
        ("setting.others_share <= quiet.BUSY", "True"),
        ("if covering.noise > WIDEST:", "if False:"),
        ("if setting.device.asks_the_host or", "if"),
        ("setting.device.asks_the_host or _is_apart(session, setting.device)", "setting.device.asks_the_host"),
        ("CheckOutcome.FLAGGED if is_apart or disagrees else", "CheckOutcome.FLAGGED if is_apart else"),
        ("CheckOutcome.FLAGGED if is_apart or disagrees else", "CheckOutcome.FLAGGED if disagrees else"),
        ("if host_ms > HOST_SHARE * call_ms else", "if True else"),
        ("half = sessions.half_width(by_device or pairs)", "half = sessions.half_width(pairs)"),
    ),
    *of(
        "checks/clock",
        LAUNCHES,
        ("return not self.pairs or self.traced_ns <= allowed_ns", "return True"),
        ("RECORDED * self.slower * self.evaluator_ns", "RECORDED * self.evaluator_ns"),
        ("return self.lead > LEAD * max(1.0, self.reference_lead)", "return False"),
        ("LEAD * max(1.0, self.reference_lead)", "LEAD"),
        ("        if len(self.calls) < FEW_CALLS:\n", "        if len(self.calls) < 2:\n"),
    ),
    *of(
        "processes/observer",
        LAUNCHES,
        ("if event.device_type() == _DEVICE)", "if event.device_type() is _DEVICE)"),
        ("key=lambda event: event.start_ns()\n    ):", "key=lambda event: 0\n    ):"),
        ("for counted in (row, *calls[-1:]):", "for counted in (row, *calls[:1]):"),
        ("            last = by\n            continue\n", "            last = by\n"),
    ),
    *of(
        "checks/screening/python_text",
        RULES,
        (
            "if pattern.fullmatch(full):\n            yield Finding(rule, node",
            "if False:\n            yield Finding(rule, node",
        ),
        ("if name in attributes and not (", "if False and not ("),
        ("    if name in BUILTINS:\n", "    if False:\n"),
        ("    elif not is_called:\n", "    elif False:\n"),
        ("    if leaf is None:\n", "    if False:\n"),
        ("    if root not in IMPORTS:\n", "    if False:\n"),
        ("        if root in refused:\n", "        if False:\n"),
        ('    elif not full.startswith("builtins.getattr"):\n', "    elif False:\n"),
        ("    if PRECISION_SETTINGS.search(full):\n", "    if False:\n"),
        ('    if not BUILD_VARIABLES.fullmatch(name or ""):\n', "    if False:\n"),
        ('ast.unparse(base).rpartition(".")[2] in INTERCEPTING', "False"),
        ('word.arg == "daemon" and not', "False and not"),
        ("len(node.args) == 3:\n", "False:\n"),
    ),
    *of(
        "checks/screening/cpp_text",
        RULES,
        ("    elif LIBRARY_HEADERS.search(name):\n", "    elif False:\n"),
        ('path.type not in ("system_lib_string", "string_literal")', "False"),
        ("    if ASSEMBLY.search(inside.lower()", "    if False and (inside.lower()"),
        ("_text(node) in STREAMS", "False"),
        ("        if pattern.search(name):\n", "        if False:\n"),
        ("    if name in TAKEN and", "    if False and"),
    ),
    *of(
        "checks/operators",
        REFUSED,
        ('report.get("marks") != list(marks)', "False"),
        ("MOST_ELEMENTS = 64", "MOST_ELEMENTS = 65"),
        ("<= MOST_ELEMENTS * calls:", "<= MOST_ELEMENTS:"),
        ("all(row.elements >= 0 for row in refused) and", ""),
        ("or (self.moves and row.leaf in COPIES)", ""),
        ("and not self._is_allowed(row.leaf)]", "]"),
        ("not 0 <= row.elements <= MOST_ELEMENTS for row", "False for row"),
    ),
    *of(
        "processes/observer",
        OBSERVED,
        ("profile_all_threads=True", "profile_all_threads=False"),
        ("    if _LIST in kinds:\n        return -1\n", ""),
        ("        _mark(first)\n", ""),
        ("max((math.prod(shape)", "min((math.prod(shape)"),
    ),
    *of(
        "processes/worker_pair",
        OBSERVED,
        ("            self._look(answer)\n", "            pass\n"),
        ("slots * max(1, self._calls)", "1 << 40"),
    ),
    *of("languages/structure", STRUCTURE, ("if old.has_extension and not new.has_extension:", "if False:")),
    *of(
        "checks/screening/symbols",
        SYMBOLS,
        ("            if pattern.search(name):\n", "            if False:\n"),
        ('        if symbol.partition("@")[0] in TAKEN:\n', "        if False:\n"),
        ('symbol["st_shndx"] == "SHN_UNDEF"', 'symbol["st_shndx"] != "SHN_UNDEF"'),
    ),
    *of(
        "processes/process",
        GATE,
        ("return any(finding.is_refusal for finding in self.findings)", "return False"),
        ("        except WorkerEnded as ended:\n", "        except WorkerEnded as ended:\n            return\n"),
        ("        except ValueError as error:\n", "        except ValueError:\n            return ''\n"),
    ),
    *of(
        "sandbox/filesystem",
        ISOLATION,
        ("    linux.enter_root(root)\n", "    pass\n"),
        ("_show(root, path, linux.ATTR_RDONLY | linux.ATTR_NOSUID", "_show(root, path, linux.ATTR_NOSUID"),
        ('f"size={filesystem.bytes_writable // 2},', 'f"size=1g,'),
    ),
    *of(
        "sandbox/child",
        ISOLATION,
        ("    if isolation.landlock:\n", "    if False:\n"),
        ("    if isolation.has_seccomp:\n", "    if False:\n"),
        ("        os.setresuid(user, user, user)\n", "        pass\n"),
        ("        linux.drop_capabilities()\n", "        pass\n"),
        ("        resource.setrlimit(kind, (value, value))\n", "        pass\n"),
        ("        resource.RLIMIT_AS: limits.address_space,\n", ""),
        ("**({resource.RLIMIT_NPROC: limits.processes} if is_alone else {}),", ""),
        ("    _close(_opened(), keep=[0, 1, 2, tell, *spec.keep])\n", "    pass\n"),
    ),
    *of(
        "sandbox/filters",
        ISOLATION,
        ("for numbers in _REFUSED.values():", "for numbers in ():"),
    ),
    *of("sandbox/filters", ISOLATION, ("        for path in readable:\n", "        for path in ['/']:\n")),
    *of(
        "sandbox/isolation",
        ISOLATION,
        ("for name in PASSED_ON if name in os.environ}", "for name in os.environ}"),
    ),
    *of(
        "checks/clock",
        CLOCK,
        ("- self.cost_ns\n", "\n"),
        ("BOUND_SPREADS * spread)", "1e12)"),
        ("return not self.overstated and", "return"),
        ("self.gap_ns - self.reference_gap_ns <= self.bound_ns", "True"),
    ),
    *of(
        "checks/clock",
        CLOCK,
        ("return Clock.of(self.reference_calls)", "return Clock.of(self.candidate_calls)"),
        ("1 / ratio if number % 2 else ratio", "ratio"),
        ("return (high - low) / 2 / statistics.median(ratios)", "return 0.0"),
    ),
    *of(
        "checks/timing_checks",
        CLOCK,
        ("CheckOutcome.FLAGGED if is_blurred else", "CheckOutcome.HELD if is_blurred else"),
        ("CheckOutcome.FLAGGED if explains_all else", "CheckOutcome.HELD if explains_all else"),
        ("    if not setting.is_memory_read:\n", "    if False:\n"),
        ("FLAGGED if max(candidate, reference) > CROWDED", "HELD if max(candidate, reference) > CROWDED"),
    ),
    *of(
        "checks/contents",
        CONTENTS,
        ("_flat(blended).index_copy_(0, places, _flat(c)[places])", "pass"),
        ("return torch.lerp(a, b, weight.to(a.dtype))", "return a"),
        ("or _is_sorted(first)", ""),
        ("or _has_even_sums(first) else", "else"),
        ("if dtype not in MIXABLE or", "if"),
        ("any(kind is not Kind.FIXED for kind in self.kinds)", "True"),
    ),
    *of(
        "machine/process_memory",
        MEMORY,
        ("if isinstance(claimed, int) and LOWEST <= claimed < HIGHEST:", "if isinstance(claimed, int):"),
        ("if extent * like.itemsize > max(", "if extent < 0 * max("),
        ("return isinstance(step, int) and 0 <= step < HIGHEST", "return isinstance(step, int)"),
        ("return difference == 0", "return True"),
    ),
    *of(
        "processes/timing",
        IDLE,
        ("            if share < BUSY:\n", "            if True:\n"),
        ("    if left := _strays(candidate, others):\n", "    if left := []:\n"),
    ),
    *of(
        "checks/timing_checks",
        REMEMBERING,
        ("return self.is_telling and", "return False and"),
        ("REMEMBERED = 0.4", "REMEMBERED = 0.01"),
        ("return self.first_ms > LEAST_MS", "return self.first_ms < LEAST_MS"),
        ("min(1.0, self.reference_share)", "self.reference_share"),
    ),
    *of(
        "checks/timing_checks",
        SUSPICION,
        ("if timed.speedup > self.policy.suspicious_speedup:", "if False:"),
        ("if timed.latency_ms < self.limit.limit_ms:", "if False:"),
        ("    if bounds.is_impossible(lower):\n", "    if False:\n"),
        ("and memory_ms <= timed.baseline_latency_ms", ""),
        ("IMPOSSIBLE if self.limit.min_bytes >= BEYOND_CACHE * cache else", "IMPOSSIBLE if True else"),
        ("lower = min(first, second,", "lower = max(first, second,"),
        (", _overlap(first, second)\n", ", True\n"),
        ("        _spoilt(\"second\", second),\n", ""),
        ("return replace(second, message=", "return first or replace(second, message="),
    ),
    *of("checks/poison", TRIALS, ("[number % 3]", "[0]")),
    *of(
        "checks/trials",
        TRIALS,
        ("    choose.shuffle(further)\n", ""),
        ('f"{seed} {name}"', 'f"{name}"'),
    ),
]  # fmt: skip
