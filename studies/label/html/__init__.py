"""Style and script of the labeler's page."""
