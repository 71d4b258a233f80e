#!/usr/bin/env python3
"""Make the wheel for Windows, as ../wheel.py does that for Linux; called by `./dev dist --windows`.

usage: windows_wheel.py BUILD_FOLDER VERSION

All libraries are linked into the programs.
"""

import os
import sys

import windows_archive

import archive  # windows_archive adds its folder
import wheel


def windows_wheel(build, work):
    made = wheel.plain_wheel(build, "win-amd64", os.path.join(work, "plain"))
    with wheel.unpacked(made, os.path.join(work, "final")) as root:
        windows_archive.strip(root)
        libraries = windows_archive.libraries_of(windows_archive.LIBRARIES)
        licenses = f"{os.path.basename(root)}.dist-info/licenses/packages"
        windows_archive.copy_licenses(os.path.join(root, licenses), libraries, windows_archive.LIBRARIES)
        archive.list_packages(os.path.join(root, "ggufmill/lib/ggufmill/packages.tsv"), libraries)
    return made, root, libraries, licenses


if __name__ == "__main__":
    wheel.main(*sys.argv[1:], make=windows_wheel)
