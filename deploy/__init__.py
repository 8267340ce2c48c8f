"""Real processes: how SuperLink, nodes and runs are started, watched and ended."""
