"""Changes of what judges a result: comparison, tolerance, inputs, the order of trials, the contract of outputs."""

from __future__ import annotations

from benchmarks.mutation import TESTS, of

PROPERTIES = (f"{TESTS}/checks/test_comparison_properties.py", f"{TESTS}/checks/test_comparison.py")
PATTERNS = (f"{TESTS}/checks/test_pattern.py",)
CHECKS = (f"{TESTS}/processes/test_checking.py",)
VERDICTS = (f"{TESTS}/processes/test_verdicts.py", "-k", "bad_candidate or positive or integer or located")

MUTATIONS = [
    *of(
        "checks/comparison",
        PROPERTIES,
        ("if not float(excess.max()) <= 0.0:", "if float(excess.max()) > 0.0:"),
        ("        return torch.equal(out, reference)\n", "        return True\n"),
        ("masks = [~(_distance(o, a, r, s)[0] <= tolerance)", "masks = [(_distance(o, a, r, s)[0] > tolerance * 20)"),
        ("torch.where(comparable | overflowed, relative, torch.inf)", "relative"),
        ("comparable = torch.isfinite(target) & torch.isfinite(wide)", "comparable = torch.isfinite(target)"),
        ("overflowed = is_same & ~torch.isfinite(reference)", "overflowed = ~torch.isfinite(reference)"),
        ("torch.where(out == reference, 0.0, torch.inf)", "torch.where(absolute == 0, 0.0, torch.inf)"),
        ("nan=torch.inf, posinf=torch.inf", "nan=0.0, posinf=0.0"),
        ("clamp_(min=LEAST_ROW * whole)", "clamp_(min=whole)"),
        ("torch.view_as_real(tensor) if tensor.is_complex()", "tensor.real if tensor.is_complex()"),
    ),
    *of(
        "checks/tolerance",
        PROPERTIES,
        ("        return 0.0\n    is_narrow", "        return 1.0\n    is_narrow"),
        ("factor * own_error) if math.isfinite(own_error) else floor", "factor * own_error)"),
        ("1.0 if is_narrow else _growth(summed)", "_growth(summed)"),
        ("_growth(summed)), MOST)", "_growth(summed)), 9.0)"),
        ("min(OWN_ERROR_FACTOR * _growth(summed) * change, most)", "OWN_ERROR_FACTOR * change"),
        ("if error <= FULL_PRECISION * _growth(summed):", "if True:"),
        ("math.sqrt(max(1.0, summed / 1000.0))", "max(1.0, summed / 1000.0)"),
        ("return not own_error <=", "return own_error <="),
    ),
    *of(
        "checks/distributions",
        PROPERTIES,
        ("torch.where(tensor == 0, 0.0, fresh)", "fresh"),
        ("fresh = torch.triu(fresh) + torch.triu(fresh, 1).T", "pass"),
        ("        or _is_whole(tensor)\n", ""),
        ("[spared + _places(tensor.numel() - spared, count)]", "[_places(tensor.numel(), count)]"),
        ("    if not math.isfinite(high - low):\n", "    if False:\n"),
        ("torch.where(inside, lifted, lowered)", "torch.where(inside, lifted, rows)"),
    ),
    *of("checks/weighing", PATTERNS, ("if step > 1:", "if step > 99:"), ("if factor == -1", "if factor == -2")),
    *of(
        "processes/checking",
        CHECKS,
        ("            if failure := self._try(trial, poison.poison_of(number)):", "            if failure := None:"),
        ("return self._held(AT_THE_END) or self._weights()", "return self._held(AT_THE_END)"),
        ("return self._held(AT_THE_END) or self._weights()", "return self._weights()"),
    ),
    *of(
        "processes/checking",
        CHECKS,
        ('if all(map(contract.is_same, workers.shared["own"], first)):', "if True:"),
        ("    if not changed:\n", "    if True:\n"),
        ("        if difference.count:\n", "        if False:\n"),
        (
            "(failure, CheckOutcome.BROKEN, detail) if is_required else",
            "(None, CheckOutcome.BROKEN, detail) if is_required else",
        ),
    ),
    *of(
        "checks/poison",
        CHECKS,
        ("        tensor.fill_(value(", "        value(value("),
    ),
    *of("processes/model_caller", CHECKS, ("        poison.fill(blocks, poisoned)", "        pass")),
    *of("processes/process", CHECKS, ("if checked.verdict is not Verdict.PASSED:", "if False:")),
    *of(
        "checks/contract",
        VERDICTS,
        ("if not is_same(after, before):", "if False:"),
        ('if leaf.get("type") != "torch.Tensor":', "if False:"),
        ('if leaf.get("shape") != list(reference.shape):', "if False:"),
        ('if leaf.get("dtype") !=', 'if "" !='),
        ('    if leaf.get("is_input"):', "    if False:"),
        ('    if leaf.get("is_reused"):', "    if False:"),
    ),
    *of("checks/weighing", VERDICTS, ("if not errors.relative <= allowed:", "if errors.relative > 1e9:")),
]
