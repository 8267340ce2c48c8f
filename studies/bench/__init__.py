"""Benchmarks: what the machine can do, what others do, and what halftruth does, measured in turn."""
