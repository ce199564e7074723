"""The engine: one process per run that writes, judges and improves kernels. Knows no screen and no database."""
