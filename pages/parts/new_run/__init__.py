"""The fields of the page that starts a run."""
