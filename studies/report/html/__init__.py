"""The page of a report: its scripts and what it looks like, beside the shared look of `studies.web`."""
