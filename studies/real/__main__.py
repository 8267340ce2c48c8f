"""`python -m studies.real` is `halftruth real`."""

import sys

from studies.cli import main

if __name__ == "__main__":
    sys.exit(main(["real", *sys.argv[1:]]))
