"""Checks that synthetic results stand on: held, flagged, broken and absent ones in all four groups."""

from __future__ import annotations

from dataclasses import replace

from storage.results.check_records import CheckOutcome, CheckRecord, Group

_RULES = ("own kernel used", "reference not reused", "current stream only", "no processes left", "machinery untouched",
          "precision kept", "no files, network, environment", "no hidden code", "no result cache")  # fmt: skip
SCREENED = (
    CheckRecord(Group.SCREENING, "no library fall-back", CheckOutcome.HELD),
    *(CheckRecord(Group.SCREENING, rule, CheckOutcome.HELD) for rule in _RULES),
    CheckRecord(
        Group.SCREENING,
        "outside functions",
        CheckOutcome.HELD,
        "214 undefined symbols, all of libc, libstdc++ and torch",
    ),
)
FALL_BACK = (
    "line 31: forward calls torch.nn.functional.scaled_dot_product_attention, which computes the task; write the "
    "computation into your own kernel"
)
REFUSED = (replace(SCREENED[0], standing=CheckOutcome.BROKEN, detail=FALL_BACK), *SCREENED[1:10])
ISOLATED = (
    CheckRecord(
        Group.ISOLATION, "network", CheckOutcome.HELD, "a namespace of its own without any interface but a closed lo"
    ),
    CheckRecord(
        Group.ISOLATION,
        "files",
        CheckOutcome.HELD,
        "Landlock ABI 5: reads 41 paths, writes one private folder of 64 MiB",
    ),
    CheckRecord(
        Group.ISOLATION, "system calls", CheckOutcome.HELD, "seccomp filter with 87 calls allowed, 3 attempts stopped"
    ),
    CheckRecord(
        Group.ISOLATION, "processes", CheckOutcome.HELD, "a process namespace of its own; 0 left when it ended"
    ),
    CheckRecord(Group.ISOLATION, "memory", CheckOutcome.HELD, "1.4 GiB at most of 8 GiB allowed", 1.4, 8.0),
    CheckRecord(Group.ISOLATION, "device partition", CheckOutcome.ABSENT, "no GPU here, so there is none to set apart"),
)
_TRIALS = (("own 1", 3.1e-7), ("wide", 6.4e-6), ("own 1 again", 3.1e-7), ("normal", 4.4e-7), ("constant rows", 0.0),
           ("tiny", 1.2e-7), ("other sizes", 2.8e-6))  # fmt: skip
AGREED = (
    *(
        CheckRecord(
            Group.CORRECTNESS, f"trial: {name}", CheckOutcome.HELD, f"error {error:.1e}, 1.0e-04 allowed", error, 1e-4
        )
        for name, error in _TRIALS
    ),
    CheckRecord(Group.CORRECTNESS, "same again", CheckOutcome.HELD, "the same inputs gave the same bits"),
    CheckRecord(Group.CORRECTNESS, "inputs untouched", CheckOutcome.HELD, "both inputs are as they were, bit by bit"),
    CheckRecord(Group.CORRECTNESS, "special values", CheckOutcome.ABSENT, "the reference is not finite there"),
)
DISAGREED = (
    AGREED[0],
    replace(
        AGREED[1], standing=CheckOutcome.BROKEN, value=0.9,
        detail="error 0.9, 1.0e-04 allowed; 262,144 of 1,048,576 elements are wrong, the first at [0, 96]",
    ),
)  # fmt: skip
TIMED = (
    CheckRecord(
        Group.TIMING,
        "clock",
        CheckOutcome.HELD,
        "the evaluator's clock decides; the worker's differs by 11 µs, 40 µs allowed",
    ),
    CheckRecord(
        Group.TIMING, "outputs of timed calls", CheckOutcome.HELD, "all 240 agree with the reference", 8.1e-6, 1e-4
    ),
    CheckRecord(Group.TIMING, "fresh inputs", CheckOutcome.HELD, "240 timed calls, no two with the same contents"),
    CheckRecord(Group.TIMING, "idle threads", CheckOutcome.HELD, "0.3 ms of processor time while the baseline ran"),
    CheckRecord(Group.TIMING, "noise", CheckOutcome.HELD, "reference against itself 1.001 (0.996 to 1.005, 20 turns)"),
    CheckRecord(
        Group.TIMING, "locked clocks", CheckOutcome.ABSENT, "a virtual machine does not let its clocks be locked"
    ),
)
SUSPICIOUS = (
    *TIMED[:5],
    CheckRecord(
        Group.TIMING, "machine", CheckOutcome.FLAGGED,
        "waiting for a processor: candidate 38 % of its time, reference 36 %; load 3.10",
    ),
)  # fmt: skip
LOST_STRUCTURE = "this repair removed the CuTe structure: 9 layouts and 4 copies became plain loops"
