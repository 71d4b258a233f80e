"""The program: `python3 -m ggufmill VERB ...` is `ggufmill VERB ...`."""

import os
import sys

from ._library import FOLDER


def main():
    program = os.path.join(FOLDER, "bin", "ggufmill")
    try:
        os.execv(program, [program, *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"ggufmill: error: {program} cannot be started: {error.strerror}")


if __name__ == "__main__":
    main()
