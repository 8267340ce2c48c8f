"""Studies of real records."""

import sys

from studies.real_records import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
