"""One kernel: built, checked, timed and profiled, on a device of this host or another. Knows no run and no method.

request.py          what an evaluator is asked, and what it answers: read first
pool/               which device, and who waits for it; a Ray cluster
toolchains/         the acts on a kernel, on a processor and on a GPU; toolchain_table.py: them by name
languages/          how a source of each language is built, and what it must look like
processes/          the process that judges, and the two that run reference and candidate
profiling/          perf, Nsight Compute, limits of devices
checks/             right? how fast? what may not run? values in, verdicts out
build/              g++ and nvcc
sandbox/            what stands around a kernel
machine/            leases, GPUs, shared memory, quiet
tasks/              reference modules, their sizes and policies
fitting.py          whether judging a task fits into this host's memory
"""
