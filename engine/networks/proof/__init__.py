"""Kernels put back into a network and measured there: are they called, do results stay as right, does it pay.

proving.py     the steps, from the network as it is to the stack of kernels that pay (read first)
ways.py        ways to call a network: eager, compiled, in a CUDA graph, each with kernels or without
unseen.py      inputs like the workloads' that no kernel has seen
engaging.py    a traced call: whose operators and kernels were seen how often
parity.py      errors of outputs and gradients against the same network in more exact arithmetic
pairing.py     two ways to call it, timed in turns
process.py     the process that all this runs in: it hands over events and may write nothing of the user's
"""
