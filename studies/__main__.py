"""`python -m studies` is `halftruth`."""

import sys

from studies.cli import main

if __name__ == "__main__":  # a worker process imports this module too
    sys.exit(main())
