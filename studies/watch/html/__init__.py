"""The page of `halftruth watch --serve`: its own script and style."""
