"""The command line's own parts: arguments, live view, printing. Knows records, not how a kernel is judged."""
