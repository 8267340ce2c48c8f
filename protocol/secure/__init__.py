"""Secure aggregation: what is public of a session that opens sums, and nothing that was sent."""
