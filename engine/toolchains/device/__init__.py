"""Building candidates for an NVIDIA device: where the tools are, how a source becomes a library. Runs no kernel."""
