"""Suites: their files, their queue, what they say."""
