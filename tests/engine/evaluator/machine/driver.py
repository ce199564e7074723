"""A driver library with a list of devices of its own, for processes that ask which device they would use.

It reads the environment as NVIDIA's does: names end at the first that fits nothing, indices follow CUDA_DEVICE_ORDER.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

# By PCI bus: what nvidia-smi calls 0 is the slow one. A part of a divided GPU has no index and is asked for by name.
SLOW, FAST, PART, TWIN = (f"{digit * 8}-0000-4000-8000-000000000000" for digit in "abcd")
SOURCE = (
    r"""
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>
struct One { const char* kind; const char* uuid; const char* name; int major; };
static const One all[] = {{"GPU-", "SLOW", "Slow One", 8}, {"GPU-", "FAST", "Fast One", 9},
                          {"MIG-", "PART", "Fast One MIG 1g.18gb", 9}, {"GPU-", "TWIN", "Fast One", 9}};
static std::vector<One> seen() {
  const char* order = getenv("CUDA_DEVICE_ORDER");
  bool by_bus = order && !strcmp(order, "PCI_BUS_ID");
  std::vector<One> ordered = by_bus ? std::vector<One>{all[0], all[1]} : std::vector<One>{all[1], all[0]};
  const char* allowed = getenv("CUDA_VISIBLE_DEVICES");
  if (!allowed) return ordered;
  std::vector<One> found;
  std::stringstream words(allowed);
  for (std::string word; std::getline(words, word, ',');) {
    const One* match = nullptr;
    if (word == "0" || word == "1") match = &ordered[word[0] - '0'];
    for (const One& one : all)
      if (word.size() > 4 && (std::string(one.kind) + one.uuid).rfind(word, 0) == 0) match = &one;
    if (!match) break;
    found.push_back(*match);
  }
  return found;
}
extern "C" {
int cuInit(unsigned) { return seen().empty() ? 100 : 0; }
int cuDeviceGetCount(int* count) { *count = seen().size(); return 0; }
int cuDeviceGet(int* device, int number) { *device = number; return 0; }
int cuDeviceGetUuid(char*, int) { return 801; }
int cuDeviceGetUuid_v2(char* to, int device) {
  std::string digits;
  for (char c : std::string(seen()[device].uuid)) if (c != '-') digits += c;
  for (int i = 0; i < 16; ++i) to[i] = std::stoi(digits.substr(2 * i, 2), nullptr, 16);
  return 0;
}
int cuDeviceGetName(char* to, int size, int device) { strncpy(to, seen()[device].name, size); return 0; }
int cuDeviceTotalMem_v2(size_t* to, int) { *to = 1ul << 34; return 0; }
int cuDeviceGetAttribute(int* to, int which, int device) { *to = which == 75 ? seen()[device].major : 0; return 0; }
int cuDevicePrimaryCtxRetain(void** to, int) { *to = nullptr; return 0; }
int cuCtxSetCurrent(void*) { return 0; }
int cuMemAlloc_v2(unsigned long long* to, size_t size) { *to = (unsigned long long)malloc(size); return 0; }
int cuMemsetD32_v2(unsigned long long at, unsigned value, size_t size) {
  const char* broken = getenv("BROKEN_DEVICE");
  if (broken && !strcmp(seen()[0].uuid, broken)) return 999;
  for (size_t i = 0; i < size; ++i) ((unsigned*)at)[i] = value;
  return 0;
}
int cuMemcpyDtoH_v2(void* to, unsigned long long from, size_t size) { memcpy(to, (void*)from, size); return 0; }
int cuGetErrorString(int, const char** text) { *text = "no such thing"; return 0; }
}
""".replace("SLOW", SLOW)
    .replace("FAST", FAST)
    .replace("PART", PART)
    .replace("TWIN", TWIN)
)


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the library: to be put on LD_LIBRARY_PATH."""
    folder = tmp_path_factory.mktemp("driver")
    words = ["g++", "-shared", "-fPIC", "-x", "c++", "-", "-o", str(folder / "libcuda.so.1")]
    subprocess.run(words, input=SOURCE, text=True, check=True)
    return folder
