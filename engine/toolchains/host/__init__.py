"""Building candidates for the host CPU: where the tools are, how a source becomes a library. Judges nothing."""
