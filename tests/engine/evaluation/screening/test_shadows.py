# ruff: noqa: E501 - one case a line
"""A name in C++ stands for its nearest variable: only there may it be something other than a tensor."""

import pytest

from engine.evaluation.screening import Rule
from tests.engine.evaluation.screening.candidates import (
    found,
    refused,
    with_cpp,
)

HONEST = {
    "lambda local ptr": with_cpp(
        "  auto run = [&](int i) { float const* x = X.data() + i; float s = x[0] * x[1]; return s + *x; }; run(0);\n"
    ),
    "lambda param ptr": with_cpp(
        "  auto run = [](float const* x, int n) { float s = 0; for (int i = 0; i < n; ++i) s += x[i] * x[i]; return s; };\n"
    ),
    "lambda scalar": with_cpp("  auto f = [](float x) { return x / (1.f + expf(-x)); };\n  f(1.f);\n"),
    "block local": with_cpp("  { float x = 1.f; float y = x * 2; y += x; }\n"),
    "for local": with_cpp("  for (int x = 0; x < 4; ++x) { int k = x * 2 + 1; }\n"),
    "for range": with_cpp("  for (float x : {1.f, 2.f}) { float k = x * 2; }\n"),
    "for range auto": with_cpp("  std::vector<float> v(3);\n  for (auto& x : v) { x = x * 2; x += 1; }\n"),
    "for idx": with_cpp("  for (int i = 0, y = 1; i < y; ++i) { int k = y * i; }\n"),
    "auto local": with_cpp("  { auto x = 1.0f; auto k = x * 2; }\n"),
    "auto ptr": with_cpp("  { auto* x = X.data(); auto k = x[0] * 2; auto q = x + 1; }\n"),
    "auto from data_ptr": with_cpp("  { auto x0 = x.data_ptr<float>(); auto y0 = x0 + 4; float v = x0[1] * 2; }\n"),
    "const auto": with_cpp("  { const auto x = X(0); float k = x * x; }\n"),
    "struct member": with_cpp(
        "  struct P { float x, y; }; P p{1, 2}; float k = p.x * p.y; P* q = &p; k = q->x + q->y;\n"
    ),
    "struct member2": with_cpp(top="struct P { float x; float y; float dot() const { return x * y; } };"),
    "other function same name": with_cpp(top="static float f(float x, float y) { return x * y + x; }"),
    "template": with_cpp(
        top="template <class T> T sq(T x) { return x * x; }\ntemplate <typename T> __host__ T sw(T const& x) { return x / (1 + x); }"
    ),
    "template tensor": with_cpp(top="template <class TX> void work(TX const& x, TX& y) { y(0) = x(0) * x(1); }"),
    "class with method": with_cpp(top="struct Swish { float a; float operator()(float x) const { return x * a; } };"),
    "functor local": with_cpp(
        "  struct Op { float operator()(float x) const { return x * 2 + x; } }; Op op; op(1.f);\n"
    ),
    "array": with_cpp("  { float x[4] = {0}; float s = x[0] * x[1]; }\n"),
    "multi decl": with_cpp("  { float a = 0, x = 1; float k = x * a; }\n"),
    "multi decl ptr": with_cpp("  { const float *a = 0, *x = X.data(); float k = x[0] * 2; k = *x + 1; }\n"),
    "int64": with_cpp("  { int64_t x = 4; std::size_t y = x * 2; unsigned int z = y + x; }\n"),
    "unsigned": with_cpp("  { unsigned x = 4; long long y = x * 2; y += x; }\n"),
    "simd": with_cpp("  { __m256 x = _mm256_loadu_ps(X.data()); __m256 y = x * x; y = x + y; }\n"),
    "vec type": with_cpp("  { using V = at::vec::Vectorized<float>; V x = V::loadu(X.data()); V y = x * x; }\n"),
    "cute tensor": with_cpp("  { auto x = make_tensor(X.data(), make_layout(4)); float k = x(0) * x(1); }\n"),
    "structured": with_cpp("  { auto [x, y] = std::make_pair(1.f, 2.f); float k = x * y; }\n"),
    "if init": with_cpp("  if (int x = 4; x > 3) { int k = x * 2; }\n"),
    "if decl": with_cpp("  if (float* y = 0) { float k = y[0] * 2; }\n"),
    "nested lambda": with_cpp(
        "  auto f = [&](int i) { auto g = [&](float x) { return x * 2; }; float y = g(1.f); return y + i; };\n"
    ),
    "parallel lambda": with_cpp(
        "  at::parallel_for(0, 4, 1, [&](int64_t b, int64_t e) { float* x = X.data(); for (int64_t i = b; i < e; ++i) { float y = x[i] * 2; x[i] = y + 1; } });\n"
    ),
    "thread lambda": with_cpp(
        "  std::vector<std::thread> pool; pool.emplace_back([&] { float* y = X.data(); y[0] = y[1] * 2; }); for (auto& t : pool) t.join();\n"
    ),
    "init capture": with_cpp(
        "  auto f = [x = X.data()](int i) { return x[i] * 2; };\n  auto g = [y = 3.f] { return y * 2; };\n"
    ),
    "restrict": with_cpp(
        "  { float* __restrict__ x = X.data(); const float* __restrict y = X.data(); x[0] = x[1] * y[0]; x[0] += y[1]; }\n"
    ),
    "reinterpret": with_cpp(
        "  { auto x = reinterpret_cast<float4*>(X.data()); auto v = x[0]; float k = v.x * v.y + v.z; }\n"
    ),
    "float4": with_cpp("  { float4 v; float k = v.x * v.y; v.x *= 2; v.y += v.x; }\n"),
    "threadidx": with_cpp(
        top="__global__ void k(float* x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] = x[i] * 2; }"
    ),
    "using torch tensors": with_cpp(top="using torch::Tensor;\nvoid helper(Tensor a, Tensor b);"),
    "member tensor": with_cpp("  struct Q { float y; }; Q q; q.y = 3; float k = q.y * 2;\n"),
    "static cast": with_cpp("  { double x = static_cast<double>(X(0)); double k = x * 2 - 1; k = 1 - x; }\n"),
    "typed template": with_cpp(
        "  { std::vector<float> x(4); float k = x[0] * x[1]; auto n = x.size() * 2; x.resize(3); }\n"
    ),
    "std array": with_cpp("  { std::array<float, 4> y{}; float k = y[0] * y[1]; y.fill(1.f); }\n"),
    "cute Array": with_cpp("  { cute::array<float, 4> y; float k = y[0] + y[1]; }\n"),
    "shape vec": with_cpp(
        "  auto s = x.sizes(); int64_t n = s[0] * 2; auto m = x.size(0) * x.numel(); auto st = x.stride(0) + 1; auto t = x.sizes()[0] * 2;\n"
    ),
    "vec sizes": with_cpp("  { auto x2 = x.sizes().vec(); x2.back() = 3; int64_t r = x2[0] * 2; }\n"),
    "numel arith": with_cpp(
        "  int n = x.numel() + y.numel() * 2 - x.dim(); int k = 2 * x.size(0); int g = (x.size(1) + 31) / 32; bool b = x.size(0) == y.size(0);\n"
    ),
    "tensor dim cmp": with_cpp(
        "  bool b = x.dim() >= 2 && x.size(-1) % 4 == 0 && 4 < x.numel() && x.sizes() == y.sizes();\n"
    ),
    "ptr arith": with_cpp(
        "  float* p = x.data_ptr<float>() + 4 * x.stride(0); float v = *(x.data_ptr<float>() + 1) * 2; float w = x.data_ptr<float>()[0] * 2;\n"
    ),
    "accessor": with_cpp("  { auto a = x.accessor<float, 1>(); float k = a[0] * a[1]; }\n"),
    "optional": with_cpp(
        top="float g(c10::optional<torch::Tensor> y) { return y.has_value() ? 1.f : 0.f; }\nfloat h(const std::optional<at::Tensor>& y) { return y->defined() ? y->size(0) * 2 : 0; }"
    ),
    "pointer to tensor": with_cpp(
        "  torch::Tensor* px = &x; auto n = px->numel() * 2; const torch::Tensor& rx = x; float* p = rx.data_ptr<float>();\n"
    ),
    "rename": with_cpp(
        "  auto xc = x.contiguous(); const float* xp = xc.data_ptr<float>(); float s = xp[0] * xp[1];\n"
    ),
    "declared fn args": with_cpp("  { int n = std::max<int>(x.size(0), 1); float v = std::min(1.f, 2.f) * n; }\n"),
    "ternary": with_cpp("  auto z = x.is_contiguous() ? x : x.contiguous(); int n = x.defined() ? 1 : 0;\n"),
    "generic lambda auto tensor": with_cpp(
        "  auto f = [](auto const& x, auto& y) { y(0) = x(0) * x(1); };\n  f(X, Y);\n"
    ),
    "lambda trailing": with_cpp(
        "  auto f = [](float x) -> float { return x * x; };\n  auto g = [](float y) mutable noexcept { return y + 1; };\n"
    ),
    "own operators": with_cpp(
        top="struct V { float a; V operator*(V const& y) const { V x = *this; x.a = x.a * y.a; return x; } };"
    ),
    "typedef": with_cpp("  typedef float real; { real x = 2; real y = x * x; }\n"),
    "qualified": with_cpp("  { std::int64_t x = 2; cutlass::half_t* y = 0; x = x * 2; y = y + 1; }\n"),
    "dependent type": with_cpp(
        top="template <class T> void w(T* p) { typename T::value_type x = p[0]; auto k = x * 2; }"
    ),
    "catch": with_cpp("  try { } catch (std::exception& y) { auto s = y.what()[0] + 1; }\n"),
    "macro kernel": with_cpp("  SQ(2.f);\n", "#define SQ(x) ((x) * (x))"),
    "enum": with_cpp("  enum { x0 = 1 }; int k = x0 * 2;\n"),
    "shadow after": with_cpp("  { float x = 2; x = x * 2; } auto z = x.contiguous();\n"),
    "function prototype then def": with_cpp(
        top="void helper(torch::Tensor x, torch::Tensor y);\nstatic float k2(const float* x, float* y, int n) { y[0] = x[0] * x[1]; return y[0] - x[0]; }"
    ),
    "local class capture": with_cpp(
        "  struct W { const float* x; float* y; void run(int i) const { y[i] = x[i] * x[i + 1]; } }; W w{X.data(), Y.data()};\n"
    ),
    "constructor init": with_cpp(top="struct W { float x; W(float y) : x(y * 2) { x = x * y; } };"),
}

EVASIONS = {
    "after the inner scope": with_cpp("  { float x = 1; x = x * 2; } y = x * y;\n"),
    "after the lambda": with_cpp("  auto f = [](float x) { return x * 2; }; y = x * y;\n"),
    "after the loop": with_cpp("  for (int x = 0; x < 2; ++x) f(x); y = x * y;\n"),
    "before the declaration": with_cpp("  { y = x * y; float x = 1; }\n"),
    "tensor in a nearer scope": with_cpp("  { float x = 1; { torch::Tensor x = y; x = x * x; } }\n"),
    "tensor of a type not read": with_cpp("  { float x = 1; { decltype(y) x = y; x = x * x; } }\n"),
    "reference of a type not read": with_cpp("  { float x = 1; { Thing& x = y; x = x * x; } }\n"),
    "labelled": with_cpp("  { float x = 1; { again: decltype(y) x = y; x = x * x; } }\n"),
    "auto of a tensor": with_cpp("  { auto x = y; y = x * x; }\n"),
    "auto of a call": with_cpp("  { auto x = mine(); y = x * x; }\n", "torch::Tensor mine();"),
    "auto of a lambda's call": with_cpp("  auto mine = [&] { return y; }; { auto x = mine(); y = x * x; }\n"),
    "auto of a moved tensor": with_cpp("  { auto x = std::move(y); y = x * x; }\n"),
    "auto of a layout": with_cpp("  { auto x = y.view(-1); y = x * x; }\n"),
    "auto of a member": with_cpp("  { auto x = holder.t; y = x * x; }\n"),
    "auto parameter": with_cpp("  auto f = [](auto x) { return x + x; }; y = f(y);\n"),
    "alias": with_cpp("  { T x = y; y = x * x; }\n", "using T = at::Tensor;"),
    "alias given twice": with_cpp(
        "  { T x = y; y = x * x; }\n", "struct A { using T = at::Tensor; };\nstruct B { using T = float; };"
    ),
    "template's type": with_cpp("  auto f = []<class T>(T x) { return x + x; }; y = f(y);\n"),
    "template's number": with_cpp("  auto f = []<int x, int z>() {}; y = x * y;\n"),
    "template's number in a call": with_cpp("  use([]<int z, int x = 3>() {}, x * x);\n"),
    "class that holds a tensor": with_cpp("  { P x{y}; y = x * x; }\n", "struct P { at::Tensor t; };"),
    "prototype": with_cpp("  void g(float x); y = x * y;\n"),
    "function type": with_cpp("  std::function<at::Tensor(float x)> g = [&](float z) { return x * x; };\n"),
    "capture of a tensor": with_cpp("  auto f = [x = y] { return x * x; };\n"),
    "type of the library that holds tensors": with_cpp("  { std::decay_t<decltype(y)> x = y; y = x * x; }\n"),
    "own class of a tensor": with_cpp(
        "  { P x(y); y = x * x; }\n", "struct P : at::Tensor { using at::Tensor::Tensor; };"
    ),
    "class around a method": with_cpp("  struct W { float x; at::Tensor f(at::Tensor x) { return x * x; } };\n"),
    "structured": with_cpp("  { auto [x, z] = std::make_pair(y, y); y = x * z; }\n"),
    "after the structured": with_cpp("  { auto [x, z] = std::make_pair(1, 2); } y = x * y;\n"),
    "range of tensors": with_cpp("  std::vector<torch::Tensor> v; for (auto& x : v) { y = x * x; }\n"),
    "else": with_cpp("  if (float x = 1) { x = x * 2; } y = x * y;\n"),
    "no body": with_cpp("  if (float x = 1; x > 0) f(x); y = x * y;\n"),
}


@pytest.mark.parametrize("source", HONEST.values(), ids=HONEST)
def test_a_nearer_variable_or_another_type_is_no_tensor(source: str) -> None:
    compile(source, "candidate", "exec")
    assert refused(source) == set(), found(source)


@pytest.mark.parametrize("source", EVASIONS.values(), ids=EVASIONS)
def test_a_tensor_does_not_hide_behind_a_variable_of_its_name(source: str) -> None:
    compile(source, "candidate", "exec")
    assert Rule.LIBRARY in refused(source), found(source)
