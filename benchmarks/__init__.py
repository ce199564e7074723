"""Programs behind the measured figures.

Each runs as `python -m benchmarks.NAME`; its docstring names a full run and the smallest one, which the tests make.

    builds.py, stock_build.py           our builds against stock load_inline
    a_a.py, cost_of_trust.py            how far two timings of one kernel differ; what judging costs over a bare check
    cheats.py, hostile.py               the cheats suite as a table; attacks in a row against one evaluator
    processor_time.py                   where honest kernels spend the processor's time, as it is sampled
    mutations.py, mutation.py, mutations_of_guards.py, mutations_of_results.py   break each check; does a test notice?
    kernel_mutants.py                   kernels that mean something else: are they caught?
    languages.py, tuner.py              one kernel in each language; what the tuner gains
    pytorch_defaults.py                 tasks with PyTorch's own settings, beside full float32
    several_devices.py, turns.py        a suite on one device and on several; what a turn in line costs
    kernelbench_files.py                every file of a folder judges its own reference
    demo_runs.py, recorded_kernels.py, replies.py   recorded runs, their kernels, raw replies of real models
    recordings/                         replies for runs on a GPU that no example needs
    kill_engine.py, kill_server.py, kill_suite.py   SIGKILL at random moments, then compare what is left
    write_faults.py                     each system call of a run's write path fails once; resume, then compare
    suite_scale.py                      the page of a suite with 20,000 iterations
    dashboard_scale.py, scale_home.py   1,000 runs, 20,000 iterations, four browsers
    chromium.py                         whose pages those are that a program opens
    labelled_runs.py                    1,000 named and tagged runs: the list; delete and undo
    prompt_sizes.py                     tokens of the longest prompts, by step and by section
    redraw.py, wire.py, ingest.py       one redraw, one event on the wire, journals into rows
    pool_simulation.py                  10,000 runs on 1 to 512 GPUs, simulated from measured times
    knowledge.py                        100,000 attempts in the knowledge base
"""
