"""Routes: what components ask the server for between reruns, and the read-only interface for machines."""
