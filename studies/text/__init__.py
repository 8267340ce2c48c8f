"""Prompts and answers as vectors: a small model that a package ships, a cache on disk, files that join by name."""
