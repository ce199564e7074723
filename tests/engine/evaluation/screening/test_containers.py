# ruff: noqa: E501 - one case a line
"""Lists, dictionaries, sizes and numbers are not tensors; what is taken out of them may be."""

import pytest

from engine.evaluation.screening import Rule
from tests.engine.evaluation.screening.candidates import (
    CALL,
    SWISH,
    forward,
    found,
    refused,
    with_init,
    with_top_and_forward,
)

HONEST = {
    "ring reverse": with_init("self.ring = [None, None]").replace(
        CALL, "y = ext.swish(x)\n        self.ring[0] = y\n        self.ring.reverse()\n        return y"
    ),
    "ring init tensors": with_init("self.ring = [torch.empty(4), torch.empty(4)]").replace(
        CALL, "self.ring.reverse()\n        y = self.ring[0]\n        ext.swish(x, y)\n        return y"
    ),
    "ring comp": with_init("self.ring = [torch.empty(4) for _ in range(2)]").replace(
        CALL, "self.ring.reverse()\n        return ext.swish(x, self.ring[0])"
    ),
    "ring append": with_init("self.ring = []").replace(
        CALL, "self.ring.append(ext.swish(x))\n        self.ring.reverse()\n        return self.ring.pop()"
    ),
    "ring mult": with_init("self.ring = [torch.empty(4)] * 2").replace(
        CALL, "self.ring.reverse()\n        return ext.swish(x, self.ring[0])"
    ),
    "list add": forward("a = [x] + [x.contiguous()]", "return ext.swish(*a)"),
    "tuple add": forward("a = (x,) + (x, 3)", "return ext.swish(*a)"),
    "list iadd": forward("a = [x]", "a += [x]", "return ext.swish(*a)"),
    "list mult": forward("a = [x] * 2", "return ext.swish(*a)"),
    "list eq": forward("a = [x]", "if len(a) == 1 and a != []: pass", "return ext.swish(*a)"),
    "local none list": forward("ring = [None, None]", "ring[0] = x", "ring.reverse()", "return ext.swish(ring[1])"),
    "param ring": with_init("self.ring = None").replace(
        CALL,
        "if self.ring is None: self.ring = [x, x]\n        self.ring.reverse()\n        return ext.swish(self.ring[0])",
    ),
    "deque": with_top_and_forward(
        "from collections import deque\nD = deque(maxlen=2)",
        "D.append(ext.swish(x))",
        "D.rotate(1)",
        "D.reverse()",
        "return D.pop()",
    ),
    "deque tensors": with_top_and_forward(
        "from collections import deque",
        "d = deque([x, x])",
        "d.rotate(1)",
        "d.reverse()",
        "n = d.count(3)",
        "return ext.swish(d.popleft())",
    ),
    "collections.deque": with_init(
        "import collections", "self.d = collections.deque([torch.empty(4), torch.empty(4)])"
    ).replace(CALL, "self.d.rotate(1)\n        return ext.swish(x, self.d[0])"),
    "dict methods": forward(
        "d = {'a': x}",
        "d.setdefault('b', x)",
        "e = d.copy()",
        "for k, v in e.items(): ext.swish(v)",
        "f = list(d.values())",
        "return ext.swish(d.pop('a'), d.get('b'))",
    ),
    "dict default": with_top_and_forward(
        "from collections import defaultdict, OrderedDict",
        "d = defaultdict(list)",
        "d['a'].append(x)",
        "d['a'].reverse()",
        "o = OrderedDict()",
        "o['x'] = x",
        "o.move_to_end('x')",
        "return ext.swish(d['a'].pop())",
    ),
    "dict update": forward("d = dict(a=x)", "d.update(b=x)", "d |= {'c': x}", "return ext.swish(**d)"),
    "sort sizes": forward(
        "s = list(x.shape)",
        "s.sort()",
        "s.reverse()",
        "i = s.index(4)",
        "c = s.count(1)",
        "m = max(s) + min(s) - sum(s)",
        "return ext.swish(x, m * i + c)",
    ),
    "sorted shape": forward(
        "a, b = sorted(x.shape)",
        "n = abs(a - b)",
        "r = round(n / 3)",
        "return ext.swish(x, r, pow(2, n), divmod(a, b)[0])",
    ),
    "prod": with_top_and_forward(
        "import math",
        "n = math.prod(x.shape)",
        "k = math.prod(x.shape[1:]) * x.size(0) // 4",
        "m = x.numel() // 4 % 3",
        "s = math.sqrt(x.shape[-1]) ** -1",
        "return ext.swish(x, n * k - m, 1.0 / s)",
    ),
    "shape arith": forward(
        "n = x.shape[0] * x.shape[1]",
        "m = x.size(0) * n",
        "k = -(-m // 128)",
        "o = (x.dim() - 1) * x.element_size()",
        "q = x.stride(0) * 4 + x.storage_offset()",
        "return ext.swish(x, n, m, k + o + q)",
    ),
    "shape tuple": forward(
        "s = x.shape[:-1] + (4,)",
        "s2 = tuple(x.shape) + tuple(x.size())",
        "t = list(x.size()) * 2",
        "return ext.swish(x.view(*x.shape[:-1], -1).reshape(s))",
    ),
    "shape cmp": forward(
        "assert x.shape[0] == x.shape[1] and x.shape == x.size()",
        "if x.shape[0] > 3 or x.size(-1) % 4: pass",
        "return ext.swish(x)",
    ),
    "shape numel": forward(
        "n = x.shape.numel() * 2", "i = x.shape.index(4)", "c = x.shape.count(1)", "return ext.swish(x, n + i + c)"
    ),
    "size numel": forward("n = x.size().numel()", "m = x[0].numel() + x[:, 1].size(0)", "return ext.swish(x, n + m)"),
    "lens": forward("n = len(x) * 2", "m = range(len(x))[-1] + 1", "return ext.swish(x, n + m)"),
    "data_ptr": forward(
        "p = x.data_ptr() % 16 == 0", "q = x.data_ptr() + 4 * x.storage_offset()", "return ext.swish(x, p, q)"
    ),
    "finfo": forward(
        "e = torch.finfo(x.dtype).max * 0.5", "b = torch.finfo(torch.float32).bits // 8", "return ext.swish(x, e + b)"
    ),
    "item sizes": forward(
        "a = [x.shape[i] for i in range(x.dim())]", "s = 1", "for v in a: s *= v", "return ext.swish(x, s)"
    ),
    "reduce shape": with_top_and_forward(
        "import functools, operator", "n = functools.reduce(operator.mul, x.shape, 1)", "return ext.swish(x, n)"
    ),
    "zip": forward(
        "n = sum(a * b for a, b in zip(x.shape, x.stride()))",
        "e = [i + 1 for i, s in enumerate(x.shape)]",
        "return ext.swish(x, n, e)",
    ),
    "conv out": SWISH.replace("forward(self, x)", "forward(self, x, w)").replace(
        CALL,
        "h = (x.shape[2] + 2 * self.p - w.shape[2]) // self.s + 1\n        n, c, *r = x.shape\n        return ext.swish(x, w, h * r[0] + n - c)",
    ),
    "conv attrs": with_init("self.conv = nn.Conv2d(3, 4, 3)").replace(
        CALL,
        "h = (x.size(2) + 2 * self.conv.padding[0] - self.conv.kernel_size[0]) // self.conv.stride[0] + 1\n        return ext.swish(x, self.conv.weight, h, self.conv.out_channels * 2)",
    ),
    "str": forward(
        "n = 'ab'.index('b') + 'aab'.count('a')",
        "s = str(x.dtype).split('.')[-1].replace('float', 'f') + '_' + str(x.shape)",
        "k = f'{x.dtype}' * 2",
        "return ext.swish(x, s.upper().lower(), n)",
    ),
    "set": forward(
        "s = {x.device, x.dtype}",
        "s.add(x.device)",
        "s = s | {1}",
        "t = s - {1}",
        "u = s & t",
        "s.discard(1)",
        "d = s.difference(t)",
        "return ext.swish(x)",
    ),
    "cache sizes": with_init("self.cache = {}").replace(
        CALL,
        "key = (x.shape, x.dtype, x.device)\n        if key not in self.cache: self.cache[key] = torch.empty_like(x)\n        out = self.cache[key]\n        ext.swish(x, out)\n        return out",
    ),
    "eps": with_init("self.eps = 1e-5", "self.n = 4").replace(
        CALL, "return ext.swish(x, self.eps * self.n + 1, float(self.eps), int(x.shape[0] ** 0.5))"
    ),
    "args": SWISH.replace("forward(self, x)", "forward(self, *args)").replace(
        CALL,
        "args = list(args)\n        x = args.pop(0)\n        args.reverse()\n        rest = args + [1]\n        return ext.swish(x, *rest)",
    ),
    "args idx": SWISH.replace("forward(self, x)", "forward(self, *args)").replace(
        CALL, "x = args[0]\n        n = args.index(x) + args.count(x)\n        return ext.swish(*args[::-1])"
    ),
    "named": with_top_and_forward(
        "from collections import namedtuple\nS = namedtuple('S', 'm n k')",
        "s = S(x.shape[0], x.shape[1], 3)",
        "return ext.swish(x, s.m * s.n + s.k)",
    ),
    "namedtuple typing": with_top_and_forward(
        "from typing import NamedTuple\nclass S(NamedTuple):\n    m: int\n    n: int",
        "s = S(x.shape[0], x.shape[1])",
        "return ext.swish(x, s.m * s.n)",
    ),
    "dataclass": with_top_and_forward(
        "from dataclasses import dataclass\n@dataclass\nclass S:\n    m: int\n    n: int\n    def tiles(self): return (self.m + 7) // 8 * self.n",
        "s = S(x.shape[0], x.shape[1])",
        "return ext.swish(x, s.tiles())",
    ),
    "helper ceil": with_top_and_forward(
        "def ceil_div(a, b):\n    return (a + b - 1) // b", "return ext.swish(x, ceil_div(x.numel(), 256))"
    ),
    "helper dims": with_top_and_forward(
        "def dims(t):\n    m, n = t.shape\n    return m, n, m * n",
        "m, n, k = dims(x)",
        "return ext.swish(x, m * n + k)",
    ),
    "helper mixed": with_top_and_forward(
        "def pick(a, b):\n    return a if a else b",
        "y = pick(x, x)",
        "n = pick(x.shape[0], 3)",
        "return ext.swish(y, n)",
    ),
    "lambda sizes": forward(
        "f = lambda n: (n + 3) // 4 * 4", "return ext.swish(x, f(x.shape[0]), list(map(lambda s: s * 2, x.shape)))"
    ),
    "loop parts": forward(
        "out = []",
        "for p in x.chunk(4): out.append(ext.swish(p))",
        "out.reverse()",
        "out.insert(0, out.pop())",
        "return out[0]",
    ),
    "slices": forward(
        "h = x.shape[0] // 2",
        "a, b = x[:h], x[h:]",
        "y = torch.empty_like(x)",
        "ext.swish(a, y[:h])",
        "ext.swish(b, y[h:])",
        "return y",
    ),
    "divmod": forward("q, r = divmod(x.numel(), 4)", "return ext.swish(x, q * 4 + r, max(q, 1), min(r, 2))"),
    "len list": forward("parts = [x, x]", "n = len(parts) * 2 + len(x.shape)", "return ext.swish(x, n)"),
    "is_contig": forward(
        "f = x.is_contiguous() and x.is_cuda",
        "n = int(x.is_contiguous()) + 1",
        "g = not x.is_cuda or x.requires_grad == False",
        "return ext.swish(x, n)",
    ),
    "device cmp": forward(
        "if x.device.type == 'cuda' and x.device.index == 0: pass",
        "if x.dtype == torch.float32 and x.device != torch.device('cpu'): pass",
        "return ext.swish(x)",
    ),
    "sum list": forward(
        "s = [x.shape[0], x.shape[1]]",
        "n = sum(s) + max(*s) + abs(min(s)) + round(s[0] * 0.5)",
        "return ext.swish(x, n)",
    ),
    "any all": forward("if any(s % 4 for s in x.shape) or all(s > 0 for s in x.shape): pass", "return ext.swish(x)"),
    "dict of numbers": with_init("self.cfg = {'bm': 64, 'bn': 32}").replace(
        CALL,
        "g = (x.shape[0] + self.cfg['bm'] - 1) // self.cfg['bm'] * self.cfg.get('bn', 1)\n        return ext.swish(x, g)",
    ),
    "tensor and number list": forward("a = [x, x.shape[0]]", "n = a[1] * 2", "return ext.swish(a[0], n)"),
    "tuple ret": with_top_and_forward(
        "def prep(t):\n    return t.contiguous(), t.shape[0], t.shape[1]",
        "x, m, n = prep(x)",
        "return ext.swish(x, m * n)",
    ),
    "inputs pack": forward(
        "flat, n = x.view(-1), x.numel()", "g = (n + 255) // 256", "return ext.swish(flat, g).view(x.shape)"
    ),
    "stride tuple": forward(
        "s = x.stride()", "n = s[0] * 2 + s[-1]", "a, b = x.stride()", "return ext.swish(x, n + a * b)"
    ),
    "size tuple": forward("b, c = x.size()", "return ext.swish(x, b * c)"),
    "batch star": forward(
        "*lead, n = x.shape",
        "m = 1",
        "for d in lead: m = m * d",
        "return ext.swish(x.reshape(m, n), m * n).reshape(*lead, n)",
    ),
    "grid tuple": forward(
        "grid = (x.shape[0] // 4, 1, 1)", "n = grid[0] * grid[1] * grid[2]", "return ext.swish(x, n)"
    ),
    "config list": with_top_and_forward(
        "CONFIGS = [(64, 64), (128, 32)]",
        "best = min(CONFIGS, key=lambda c: abs(c[0] * c[1] - x.numel()))",
        "return ext.swish(x, best[0] * best[1])",
    ),
    "item": SWISH.replace("forward(self, x)", "forward(self, x, n)").replace(
        CALL, "k = int(n) + 1\n        return ext.swish(x, k)"
    ),
    "scalar param": SWISH.replace("forward(self, x)", "forward(self, x, dim: int, eps: float)").replace(
        CALL, "return ext.swish(x, dim + 1, eps * 2)"
    ),
    "scalar default": SWISH.replace("forward(self, x)", "forward(self, x, dim=1, scale=None)").replace(
        CALL, "s = 1.0 if scale is None else float(scale)\n        return ext.swish(x, dim % x.dim(), s)"
    ),
    "optional int": SWISH.replace("class ModelNew", "from typing import Optional, List\nclass ModelNew")
    .replace("forward(self, x)", "forward(self, x, dim: Optional[int] = None, ks: List[int] = ())")
    .replace(CALL, "d = -1 if dim is None else dim + 1\n        return ext.swish(x, d, [k * 2 for k in ks])"),
    "union int": SWISH.replace("forward(self, x)", "forward(self, x, dim: int | None)").replace(
        CALL, "return ext.swish(x, dim + 1)"
    ),
    "itertools": with_top_and_forward(
        "import itertools", "l = list(itertools.chain([x], [x]))", "l.reverse()", "return ext.swish(*l)"
    ),
    "copy list": with_top_and_forward("import copy", "l = copy.copy([x, x])", "l.reverse()", "return ext.swish(*l)"),
    "list()": forward("l = list((x, x))", "l.reverse()", "l.sort(key=id)", "return ext.swish(*l)"),
    "sorted": forward("l = sorted([x, x], key=lambda t: t.numel())", "l.reverse()", "return ext.swish(*l)"),
    "reversed": forward("l = list(reversed([x, x]))", "l.reverse()", "return ext.swish(*l)"),
    "list slice": forward("l = [x, x, x][1:]", "l.reverse()", "return ext.swish(*l)"),
    "list slice2": forward("l = [x, x.contiguous()]", "m = l[:1]", "m.reverse()", "return ext.swish(*m)"),
    "list chunk": forward("l = list(x.chunk(2))", "l.reverse()", "return ext.swish(*l)"),
    "split": forward("l = x.split(2)", "n = len(l) * 2", "m = l + (x,)", "return ext.swish(*m, l.index(x))"),
    "unbind": forward("l = list(x.unbind(0))", "l.reverse()", "return ext.swish(*l)"),
    "nested list": forward(
        "l = [[x], [x]]", "l[0].reverse()", "l[0].append(x)", "l.reverse()", "return ext.swish(*l[0])"
    ),
    "params list": with_init("self.w = nn.Parameter(torch.ones(3))").replace(
        CALL, "ws = list(self.parameters())\n        ws.reverse()\n        return ext.swish(x, *ws)"
    ),
    "params list2": with_init("self.ws = nn.ParameterList([nn.Parameter(torch.ones(3))])").replace(
        CALL, "n = len(self.ws) * 2\n        ws = list(self.ws) + [x]\n        return ext.swish(x, self.ws[0], n)"
    ),
    "tensors and none": with_init("self.bias = None").replace(
        CALL,
        "b = self.bias if self.bias is not None else torch.empty(0)\n        return ext.swish(x, b, self.bias is None)",
    ),
    "idx toggle": with_init("self.bufs = [torch.empty(4), torch.empty(4)]", "self.i = 0").replace(
        CALL,
        "self.i = (self.i + 1) % len(self.bufs)\n        out = self.bufs[self.i]\n        ext.swish(x, out)\n        return out",
    ),
    "idx xor": with_init("self.i = 0").replace(
        CALL, "self.i ^= 1\n        self.i += 1\n        self.i = 1 - self.i\n        return ext.swish(x, self.i)"
    ),
    "swap": forward("l = [x, x]", "l[0], l[1] = l[1], l[0]", "return ext.swish(*l)"),
    "del": forward("l = [x, x]", "del l[0]", "l.clear()", "l.extend([x])", "l.remove(x)", "return ext.swish(x)"),
    "class ring": with_top_and_forward(
        "class Ring:\n    def __init__(self):\n        self.items = []\n    def push(self, t):\n        self.items.append(t)\n        self.items.reverse()\n        return self.items[0]\nR = Ring()",
        "return R.push(ext.swish(x))",
    ),
    "ring or": with_init("self.ring = []").replace(
        CALL,
        "ring = self.ring or [torch.empty_like(x), torch.empty_like(x)]\n        ring.reverse()\n        return ext.swish(x, ring[0])",
    ),
    "getattr list": with_init("self.ring = [torch.empty(3)]").replace(
        CALL, "r = getattr(self, 'ring', None)\n        r.reverse()\n        return ext.swish(x, r[0])"
    ),
    "dict ring": with_init("self.rings = {}").replace(
        CALL,
        "ring = self.rings.get(x.shape)\n        if ring is None:\n            ring = [torch.empty_like(x), torch.empty_like(x)]\n            self.rings[x.shape] = ring\n        ring.reverse()\n        out = ring[0]\n        ext.swish(x, out)\n        return out",
    ),
    "dict ring2": with_init("self.rings = {}").replace(
        CALL,
        "if x.shape not in self.rings:\n            self.rings[x.shape] = [torch.empty_like(x), torch.empty_like(x)]\n        self.rings[x.shape].reverse()\n        out = self.rings[x.shape][0]\n        ext.swish(x, out)\n        return out",
    ),
    "setdefault ring": with_init("self.rings = {}").replace(
        CALL,
        "ring = self.rings.setdefault(x.shape, [torch.empty_like(x), torch.empty_like(x)])\n        ring.reverse()\n        out = ring[0]\n        ext.swish(x, out)\n        return out",
    ),
}

EVASIONS = {
    "elements of lists": forward("a, b = [ext.swish(x)], [x]", "return a[0] * b[0]"),
    "element of a reversed list": forward("l = [x, ext.swish(x)]", "l.reverse()", "return l[0] * 2"),
    "popped": forward("l = [ext.swish(x)]", "return l.pop().exp()"),
    "sliced": forward("l = [ext.swish(x), x][:1]", "return l[0] + 1"),
    "sum of a list": forward("return sum([x, ext.swish(x)])"),
    "from a deque": with_top_and_forward(
        "from collections import deque", "d = deque([ext.swish(x)])", "return d.popleft().mul(2)"
    ),
    "from a copy": with_top_and_forward("import copy", "return copy.copy([ext.swish(x)])[0].relu()"),
    "copied tensor": with_top_and_forward("import copy", "return copy.copy(ext.swish(x)).relu()"),
    "from values": forward("d = {'a': ext.swish(x)}", "return [v.exp() for v in d.values()][0]"),
    "from items": forward("d = {'a': ext.swish(x)}", "for k, v in d.items(): y = v * 2", "return y"),
    "from get": forward("d = {'a': ext.swish(x)}", "return d.get('a') * 2"),
    "from chunk": forward("a, b = ext.swish(x).chunk(2)", "return a * b"),
    "from split": forward("return torch.split(ext.swish(x), 2)[0].exp()"),
    "joined lists": forward("l = [x] + [ext.swish(x)]", "return l[1] * 2"),
    "repeated list": forward("l = [ext.swish(x)] * 2", "return l[1] * 2"),
    "element added in place": forward("l = [ext.swish(x)]", "l[0] += x", "return l[0]"),
    "buffer in a list": with_init("self.ring = [torch.empty(4)]").replace(
        CALL, "ext.swish(x, self.ring[0])\n        return self.ring[0].relu()"
    ),
    "buffer in a nested list": with_init("self.ring = [[torch.empty(4)]]").replace(
        CALL, "ext.swish(x, self.ring[0][0])\n        return self.ring[0][0].relu()"
    ),
    "buffers by star": forward("l = [torch.empty(4)]", "ext.swish(x, *l)", "return l[0].relu()"),
    "list or tensor": forward("y = [x]", "if x.dim(): y = ext.swish(x)", "return y * 2"),
    "operator by a list": forward("return ext.swish(x) * [2][0]"),
    "fold of tensors": with_top_and_forward(
        "import functools, operator", "return functools.reduce(operator.mul, [x, ext.swish(x)])"
    ),
    "fold of tensors alone": with_top_and_forward(
        "import operator\nfrom functools import reduce as r", "return r(operator.mul, [ext.swish(x)] * 2)"
    ),
    "own reduce": with_top_and_forward(
        "import operator\ndef reduce(f, n):\n    return f", "return reduce(operator.mul, 2)(x, ext.swish(x))"
    ),
    "key of a dictionary": forward("d = {torch.relu: 1}", "for f in d: y = f(ext.swish(x))", "return y"),
    "namespace": with_top_and_forward("import types", "n = types.SimpleNamespace(t=ext.swish(x))", "return n.t * 2"),
    "named tuple": with_top_and_forward(
        "from collections import namedtuple\nS = namedtuple('S', 't n')", "s = S(ext.swish(x), 1)", "return s.t * 2"
    ),
    "first input called a number": SWISH.replace("forward(self, x)", "forward(self, x: float)").replace(
        CALL, "return ext.swish(x * 2)"
    ),
    "first input with a default": SWISH.replace("forward(self, x)", "forward(self, x=0)").replace(
        CALL, "return ext.swish(x * 2)"
    ),
    "dropped for parts": forward("ext.swish(x)", "return x.relu().chunk(2)[0]"),
    "dict of ops by index": forward("l = [torch.relu]", "return l[l.index(torch.relu)](ext.swish(x))"),
    "starmap": with_top_and_forward(
        "import itertools, operator", "return list(itertools.starmap(operator.mul, [(x, ext.swish(x))]))[0]"
    ),
}


@pytest.mark.parametrize("source", HONEST.values(), ids=HONEST)
def test_what_is_done_to_containers_and_sizes_is_no_arithmetic_on_tensors(source: str) -> None:
    compile(source, "candidate", "exec")
    assert refused(source) == set(), found(source)


@pytest.mark.parametrize("source", EVASIONS.values(), ids=EVASIONS)
def test_a_tensor_in_a_container_is_still_a_tensor(source: str) -> None:
    compile(source, "candidate", "exec")
    assert Rule.LIBRARY in refused(source), found(source)
