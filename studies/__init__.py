"""The composition root: studies, their runtimes, scores and reports. It may import everything; nothing imports it."""
