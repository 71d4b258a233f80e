"""The program: `python3 -m ggufmill VERB ...` is `ggufmill VERB ...`."""

import os
import signal
import subprocess
import sys

from ._library import FOLDER


def main():
    program = os.path.join(FOLDER, "bin", "ggufmill.exe" if os.name == "nt" else "ggufmill")
    arguments = [program, *sys.argv[1:]]
    os.environ.setdefault("GGUFMILL_PYTHON", sys.executable)  # which has the packages that were installed with this one
    try:
        if os.name == "nt":  # where exec gives the console back before the program ends
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the program, which gets it too
            sys.exit(subprocess.run(arguments).returncode)
        os.execv(program, arguments)
    except OSError as error:
        sys.exit(f"ggufmill: error: {program} cannot be started: {error.strerror}")


if __name__ == "__main__":
    main()
