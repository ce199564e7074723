"""What the page of networks is made of. Figures are those of `storage.networks.ranking`.

networks_list.py       networks that were captured, and how one is
example_networks.py    those that come with Tilewright, opened by a click
network_header.py      where one stands, its figures, and what could not be done
icicle.py              time by place: the module tree, as wide as it takes long
compiled_kernels.py    what runs under torch.compile, a row a kernel with all its places
proof_state.py         what kernels bring in the network as a whole, what is at work on it, what can be done next
workload_bars.py       each workload before and after, with the ceiling as a mark
network_kernels.py     every kernel alone and in the network, its verdict, and a switch to measure without it
whole_curve.py         the network's speed-up after each kernel that was kept, over what searching had cost
regions_table.py       every region with what a kernel for it could do, and its latest run
region_panel.py        one region: places, operators, tensors, its task and its runs
region_states.py       what may be done about a region, or what came of it, in a word and a colour
place_words.py         many places in few words
network_dialogs.py     capturing a network, starting runs for its regions, searching kernels for them, deleting it
"""
