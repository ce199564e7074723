"""Run folders, journals and the DuckDB index over them. Knows nothing of engines, models or screens."""
