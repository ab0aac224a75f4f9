"""Repeatable timings, each with a ratio to a named other. Never asserted in tests."""
