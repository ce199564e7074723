// TILEWRIGHT_VL: how many floats one vector register holds on the machine this is compiled for.
#pragma once
#if defined(__AVX512F__)
#define TILEWRIGHT_VL 16
#else
#define TILEWRIGHT_VL 8
#endif
