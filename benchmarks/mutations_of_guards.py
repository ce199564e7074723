"""Changes of what keeps a candidate honest: screening, isolation, timing."""

from __future__ import annotations

from benchmarks.mutation import TESTS, of

RULES = (f"{TESTS}/evaluation/screening/test_rules.py",)
LIBRARY = (f"{TESTS}/evaluation/screening/test_library.py", f"{TESTS}/evaluation/screening/test_reach.py")
CONTAINERS = (f"{TESTS}/evaluation/screening/test_containers.py",)
SHADOWS = (f"{TESTS}/evaluation/screening/test_shadows.py",)
SYMBOLS = (f"{TESTS}/evaluation/screening/test_library_symbols.py",)
STRUCTURE = (f"{TESTS}/evaluation/screening/test_structure.py",)
ISOLATION = (f"{TESTS}/sandbox",)
CLOCK = (f"{TESTS}/evaluation/test_clock.py",)
CONTENTS = (f"{TESTS}/evaluation/test_contents.py",)
MEMORY = (f"{TESTS}/machine/test_process_memory.py",)
REMEMBERING = (f"{TESTS}/evaluation/test_timing_checks.py", "-k", "explain")
SUSPICION = (f"{TESTS}/evaluation/test_suspicion.py",)
IDLE = (f"{TESTS}/evaluator/test_timing.py", "-k", "burns or left_running")
GATE = (f"{TESTS}/evaluator/test_gate.py",)
TRIALS = (
    f"{TESTS}/evaluation/test_trials.py",
    f"{TESTS}/evaluator/test_checking.py",
    "-k",
    "order_of_further or secret",
)

MUTATIONS = [
    *of(
        "evaluation/screening/python/rules",
        (*LIBRARY, *RULES),
        ("elif use.act in (Act.CALLED, Act.LOADED) and operators.is_computing(use.name):", "elif False:"),
        ("    if use.act is Act.COMPUTED:\n", "    if False:\n"),
        ("if use.act in (Act.CALLED, Act.LOADED) and STREAMS.fullmatch(use.name):", "if False:"),
        ("if OS_PROCESSES.fullmatch(use.name) or PROCESSES.fullmatch(use.name):", "if False:"),
        ("elif MACHINERY.fullmatch(use.name):", "elif False:"),
        ("elif last in ATTRIBUTES:", "elif False:"),
        ("if use.act in (Act.CALLED, Act.STORED) and PRECISION.fullmatch(use.name):", "if False:"),
        ("elif OUTSIDE.fullmatch(use.name):", "elif False:"),
        ("    if use.act is Act.DYNAMIC:\n", "    if False:\n"),
        ("if root not in IMPORTS:", "if False:"),
        ("if use.act is Act.KEPT and use.is_forward:", "if False:"),
    ),
    *of(
        "evaluation/screening/screening",
        (*LIBRARY, *RULES),
        ("    if not is_reached and not is_unclear:\n", "    if False:\n"),
        ("        elif name in reading.called_classes:\n", "        elif False:\n"),
        ("if theirs is not None and not is_reached and _same(mine, theirs):", "if False:"),
    ),
    *of(
        "evaluation/screening/cpp/rules",
        (*LIBRARY, *RULES),
        ("            if pattern.fullmatch(named.leaf):\n", "            if False:\n"),
        ("if pattern.fullmatch(named.leaf) and not (head", "if False and not (head"),
        ("if ASSEMBLY.search(inside.lower()):", "if False:"),
        ("if not operators.is_allowed(computed.name, policy.library_operators):", "if False:"),
    ),
    *of(
        "evaluation/screening/python/containers",
        CONTAINERS,
        ("return frozenset({held}) if name in METHODS else", "return frozenset({held}) if True else"),
        ("return union((held.all, frozenset({held}), *given[1:]))", "return NUMBER"),
        ("return [value.load for value in values if isinstance(value, Tensor)]", "return []"),
        ("return union((*parts, values if has_other else NOTHING))", "return union(parts)"),
    ),
    *of(
        "evaluation/screening/cpp/shadows",
        SHADOWS,
        ("return self._nearest(named.name, named.first) is True", "return False"),
        ("return self._nearest(named.name, named.first) is True", "return True"),
        ("return chain_end(view, named.last + 1) is not None", "return True"),
        ("return self._after_statement(close) if self._is_control(opener) else close", "return self._end"),
        ("key=lambda each: each.start", "key=lambda each: -each.start"),
    ),
    *of(
        "evaluation/screening/cpp/shadows",
        SHADOWS,
        ("if not inside & HOLDS_TENSOR:", "if True:"),
        ("if name not in self._unclear_names()}", "}"),
    ),
    *of("evaluation/screening/structure", STRUCTURE, ("if old.has_extension and not new.has_extension:", "if False:")),
    *of("evaluation/screening/screening", SYMBOLS, ("for symbol in symbols", "for symbol in ()")),
    *of(
        "evaluator/process",
        GATE,
        ("return any(one.is_refusal for one in self.findings)", "return False"),
        ("        except WorkerEnded as ended:\n", "        except WorkerEnded as ended:\n            return\n"),
        ("        except ValueError as error:\n", "        except ValueError:\n            return ''\n"),
    ),
    *of(
        "sandbox/filesystem",
        ISOLATION,
        ("    linux.enter_root(root)\n", "    pass\n"),
        ("_show(root, path, linux.ATTR_RDONLY | linux.ATTR_NOSUID", "_show(root, path, linux.ATTR_NOSUID"),
        ('f"size={filesystem.bytes_writable},', 'f"size=1g,'),
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
        "evaluation/clock",
        CLOCK,
        ("- self.cost_ns\n", "\n"),
        ("BOUND_SPREADS * spread)", "1e12)"),
        ("return not self.overstated and", "return"),
        ("self.gap_ns - self.reference_gap_ns <= self.bound_ns", "True"),
    ),
    *of(
        "evaluation/clock",
        CLOCK,
        ("return Clock.of(self.reference_calls)", "return Clock.of(self.candidate_calls)"),
        ("1 / ratio if number % 2 else ratio", "ratio"),
        ("return (high - low) / 2 / statistics.median(ratios)", "return 0.0"),
    ),
    *of(
        "evaluation/timing_checks",
        CLOCK,
        ("Standing.FLAGGED if is_blurred else", "Standing.HELD if is_blurred else"),
        ("Standing.FLAGGED if explains_all else", "Standing.HELD if explains_all else"),
        ("    if not setting.is_memory_read:\n", "    if False:\n"),
        ("Standing.FLAGGED if max(mine, theirs) > CROWDED", "Standing.HELD if max(mine, theirs) > CROWDED"),
    ),
    *of(
        "evaluation/contents",
        CONTENTS,
        ("_flat(made).index_copy_(0, places, _flat(c)[places])", "pass"),
        ("return torch.lerp(a, b, weight.to(a.dtype))", "return a"),
        ("or _is_sorted(first)", ""),
        ("or _has_even_sums(first) else", "else"),
        ("if first.dtype not in MIXABLE or", "if"),
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
        "evaluator/timing",
        IDLE,
        ("            if share < BUSY:\n", "            if True:\n"),
        ("    if left := _strays(candidate, others):\n", "    if left := []:\n"),
    ),
    *of(
        "evaluation/timing_checks",
        REMEMBERING,
        ("return self.is_telling and", "return False and"),
        ("REMEMBERED = 0.4", "REMEMBERED = 0.01"),
        ("return self.first_ms > LEAST_MS", "return self.first_ms < LEAST_MS"),
        ("min(1.0, self.reference_share)", "self.reference_share"),
    ),
    *of(
        "evaluation/timing_checks",
        SUSPICION,
        ("if timed.speedup > self.policy.suspicious_speedup:", "if False:"),
        ("if timed.latency_ms < self.limit.limit_ms:", "if False:"),
        ("    if bounds.is_impossible(lower):\n", "    if False:\n"),
        ("lower = min(first, second,", "lower = max(first, second,"),
        ("    if not _overlap(first, second):\n", "    if False:\n"),
        ("and all(_is_calm(timed) for timed in (first, second))", ""),
        ("return replace(second, message=", "return first or replace(second, message="),
    ),
    *of(
        "evaluation/trials",
        TRIALS,
        ("[number % 3]", "[0]"),
        ("    random.Random(f\"{seed} order\").shuffle(further)\n", ""),
        ('f"{seed} {name}"', 'f"{name}"'),
    ),
]  # fmt: skip
