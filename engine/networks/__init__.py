"""A user's whole network: captured, its places timed, grouped into regions, each region a task.

capture.py     the work of `network capture`, step by step (read first)
entries.py     where a network comes from: a function of the user's file, or a transformers configuration
watching.py    one call seen from inside: which modules are called, with what, and what they return
place_times.py what each place takes in a call, by the profiler's ranges
compiled.py    the same call under torch.compile: kernels, and the places they come from
cuda_graphs.py a call as one CUDA graph, replayed with other inputs
grouping.py    equal modules as one region
drafting.py    regions before they are written: names, inputs, parameters
graphs.py      a module as operators (torch.export), run and timed operator by operator
fusing.py      runs of cheap operators around a product that a module's border cuts
task_text.py   operators as a readable Model with its inputs
recorded.py    what a region was given and gave, as a file beside its task
placing.py     what a prompt says of a region's place
writing.py     a region's folder: task, policy, recorded tensors; proof that the text is the module
limiting.py    what the hardware allows for each region, asked of the evaluator

optimising.py  which regions a search takes up, as a suite
applying.py    kernels put back: which ones, their package, the process that measures them
fingerprint.py what the figures of that depend on, and whether one that was broken off goes on
proof/         what that process does: engaged? right? faster in place?
reporting.py   what came of it, as a file for a browser
starting.py    these commands, started from a page
small.py       the network that comes with Tilewright
examples.py    a network with its search and runs as an archive: exported, listed, opened
elsewhere.py   what cannot be done with one that was captured elsewhere

`limiting`, `placing`, `optimising`, `applying`, `fingerprint`, `reporting`, `starting`, `examples` and `elsewhere`
import no torch; the others run in the process of a capture, or of a proof.
"""
