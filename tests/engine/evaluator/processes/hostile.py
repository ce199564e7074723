"""Candidates that attack the evaluator instead of computing, by kind. Every one is bounded should the sandbox fail."""

from __future__ import annotations

from collections.abc import Mapping

from tests.engine.evaluator.toolchains.kernels import LOOP, SWISH, forward, swish

PATIENT = ["-fconstexpr-ops-limit=1000000000000000", "-fconstexpr-loop-limit=2000000000"]
HANG_IN_STR = """
class Sly(BaseException):
    def __str__(self):
        while True: pass
"""


def _module(text: str) -> str:
    """Runs at import, before the honest rest of the file."""
    return text + "\n" + SWISH


def _loop(text: str) -> str:
    """C++ in the place of the kernel's loop."""
    return swish(loop=text)


def _global(text: str) -> str:
    """C++ ahead of the kernel."""
    return SWISH.replace("using namespace cute;", "using namespace cute;\n" + text)


RUNNING: Mapping[str, str] = {
    "endless loop in Python": forward(
        "import signal", "signal.signal(signal.SIGTERM, signal.SIG_IGN)", "while True: pass"
    ),
    "endless loop in C++": _loop("  volatile int run = 1; while (run) {}\n"),
    "endless loop at import": _module("while True: pass"),
    "endless loop in an error's text": _module(HANG_IN_STR).replace(
        "    def forward(self, x):\n", "    def forward(self, x):\n        raise Sly()\n"
    ),
    "fork storm in Python": forward(
        "import os, time",
        "for _ in range(400):",
        "    try:",
        "        if os.fork() == 0: os.setsid()",
        "    except OSError: pass",
        "    if len(os.listdir('/proc/self/task')) > 9: break",
        "while True: time.sleep(1)",
    ),
    "fork storm in C++": _global("#include <unistd.h>\n#include <csignal>").replace(
        LOOP, "  for (int i = 0; i < 300; ++i) if (fork() == 0) { setsid(); alarm(60); for (;;) pause(); }\n"
        "  for (;;) pause();\n",
    ),
    "memory hog": forward("held = []", "for _ in range(40): held.append(bytearray(1 << 28))", "return x"),
    "memory hog in C++": _loop("  std::vector<char*> held; for (int i = 0; i < 200; ++i) { auto p = new char[1 << 27];"
                               " for (int j = 0; j < (1 << 27); j += 4096) p[j] = 1; held.push_back(p); }\n"),
    "memory hog in many processes": forward(
        "import os, time",
        "for _ in range(12):",
        "    if os.fork() == 0:",
        "        held = bytearray(b'x') * (1 << 30)",
        "        time.sleep(60)",
        "        os._exit(0)",
        "time.sleep(60)",
        "return x",
    ),
    "disk filler": forward(
        "block = b'x' * (1 << 20)",
        "for number in range(3000):",
        "    with open(f'fill{number}', 'wb') as file: file.write(block)",
        "return x",
    ),
    "one huge file": forward("open('huge', 'wb').truncate(1 << 45)", "return x"),
    "invalid address": _loop("  *(volatile float*)8 = 1.f;\n"),
    "stack overflow": _global("volatile int deep = 1; int down(int n) { volatile char page[4096]; page[0] = n;"
                              " return deep ? down(n + 1) + page[0] : 0; }").replace(
        "  auto y = torch", "  if (down(0) == 1) return x;\n  auto y = torch"),
    "division by zero": _loop("  volatile int zero = 0, one = 1; Y(0) = one / zero;\n"),
    "abort": _loop("  std::abort();\n"),
    "exit status 0": forward("import os", "os._exit(0)"),
    "exit in C++": _loop("  std::exit(0);\n"),
    "SystemExit": forward("raise SystemExit(0)"),
    "another program instead": forward("import os", "os.execv('/bin/true', ['true'])"),
    "kill the parent": forward("import os", "os.kill(os.getppid(), 9)", "import time", "time.sleep(60)"),
    "kill everybody": forward("import os", "os.kill(-1, 9)", "import time", "time.sleep(60)"),
    "stop itself": forward("import os", "os.kill(os.getpid(), 19)", "return x"),
    "closed descriptors": forward("import os", "os.closerange(0, 4096)", "return x"),
    "forged answers": forward(
        "import os, json",
        "line = json.dumps({'ns': 1, 'number': 0, 'outputs': [], 'container': 'Tensor'}).encode() + b'\\n'",
        "for number in range(3, 64):",
        "    try: os.write(number, line)",
        "    except OSError: pass",
        "return x",
    ),
    "an answer without end": forward(
        "import os",
        "os.set_blocking(1, True)",
        "for number in range(3, 64):",
        "    try:",
        "        for _ in range(64): os.write(number, b'{' * (1 << 20))",
        "    except OSError: pass",
        "return x",
    ),
    "log flood": forward("import os", "while True: os.write(1, b'x' * (1 << 16))"),
    "daemon with our pipes": forward(
        "import os, time",
        "if os.fork() == 0:",
        "    os.setsid()",
        "    if os.fork(): os._exit(0)",
        "    time.sleep(600)",
        "os._exit(0)",
    ),
    "recursion without end": forward("import sys", "sys.setrecursionlimit(10**9)", "return self.forward(x)"),
    "library constructor": _global("#include <csignal>\n__attribute__((constructor)) void begin() { raise(SIGKILL); }"),
    "poisoned heap": _loop("  auto p = new char[16]; for (int i = 0; i < 1 << 20; ++i) p[i] = 1; delete[] p;\n"),
}  # fmt: skip

BUILDING: Mapping[str, str] = {
    "a device as header": _global('#include "/dev/zero"'),
    "templates without end": _global(
        "template <int N> struct Down { static constexpr int value = Down<N + 1>::value + 1; };"
        "\nint bottom = Down<0>::value;"
    ).replace("load_inline(name", "load_inline(extra_cflags=['-ftemplate-depth=100000000'], name"),
    "macros that explode": _global(
        "#define A0 x x x x x x x x\n"
        + "".join(f"#define A{n} " + f"A{n - 1} " * 8 + "\n" for n in range(1, 12))
        + "int boom() { A11 }"
    ),
    "constexpr without end": _global(
        "constexpr long spin() { long n = 0; for (long i = 0; i < (1L << 60); ++i) n += i; return n; }\n"
        "constexpr long spun = spin();"
    ).replace("load_inline(name", f"load_inline(extra_cflags={PATIENT!r}, name"),
    "a header that includes itself": _global("#include __FILE__"),
    "an array of terabytes": _global("char huge[1L << 40] = {1};"),
    "a secret as header": _global('#include "/etc/shadow"'),
    "a secret as data": _global('asm(".section .rodata\\nsecret: .incbin \\"/etc/shadow\\"");'),
    "errors by the thousand": _global("\n".join(f"int e{n} = undefined{n};" for n in range(3000))),
}  # fmt: skip

KINDS: Mapping[str, str] = {**RUNNING, **BUILDING}
