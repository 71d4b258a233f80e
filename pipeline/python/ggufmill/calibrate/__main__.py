"""The program: `python3 -m ggufmill.calibrate` is `ggufmill-calibrate`."""

from .command import script

if __name__ == "__main__":
    script()
