#!/usr/bin/env python3
"""Pack what the preset `windows` built into one archive; called by `./dev dist --windows`.

usage: windows_archive.py BUILD_FOLDER VERSION

Writes into BUILD_FOLDER:
  ggufmill-VERSION-windows-x86_64.zip        the program, the library and its headers, kernel modules, licenses
  ggufmill-VERSION-windows-x86_64.spdx.json  a software bill of materials (SPDX 2.3)

The same commit and the same sources of the libraries give the same bytes: SOURCE_DATE_EPOCH is the time of everything.
"""

import os
import shutil
import subprocess
import sys
import time
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from archive import distribution, files_below, list_packages, write_bill  # noqa: E402

STRIP = "x86_64-w64-mingw32-strip"
DLLTOOL = "x86_64-w64-mingw32-dlltool"
# All libraries are linked into the programs: those that `dependencies` has built in this folder, and the compiler's.
LIBRARIES = os.path.join(HERE, "../../../build/windows-libraries")
COMPILER_PACKAGES = ["gcc-mingw-w64-x86-64-posix-runtime", "mingw-w64-x86-64-dev"]

README = """ggufmill {version} for Windows 10 and later, x86-64

bin\\ggufmill.exe runs from wherever this folder is; nothing has to be installed. Add bin to PATH, or call it by its path:
  bin\\ggufmill.exe quantize model-BF16.gguf model-Q4_K_M.gguf Q4_K_M

`ggufmill --version --verbose` lists the libraries that are linked into it. Kernels for the tensor types of ik_llama.cpp are
used with `--kernel-dir lib\\ggufmill-ik`. share\\doc\\ggufmill has the licenses.

The library is bin\\libggufmill.dll, for programs in every language that can call C: include\\ggufmill.h, and for the linker
lib\\ggufmill.lib (Visual Studio) or lib\\libggufmill.dll.a (MinGW-w64). Kernel modules are DLLs that include
include\\ggufmill_kernels.h.
"""

LICENSES_README = """The licenses of the libraries that are linked into the programs in this folder. They are built from these source
packages of {distribution}, which are at https://snapshot.debian.org/package/NAME/VERSION/ :

"""


class Library:
    """A library in the programs, for the bill of materials."""

    def __init__(self, name, source, version):
        self.name, self.source = name, source
        self.version = self.source_version = version
        self.architecture, self.homepage, self.files, self.license = "source", "", [], name + ".txt"


def fail(message):
    sys.exit(f"dev dist windows: {message}")


def libraries_of(folder):
    """Return what `dependencies` has built, sorted by name."""
    found = []
    for name in sorted(os.listdir(os.path.join(folder, "done"))):
        with open(os.path.join(folder, "done", name)) as file:
            found.append(Library(name, *file.read().split()))
    for package in COMPILER_PACKAGES:
        text = subprocess.run(["dpkg-query", "-W", "-f", "${source:Package} ${source:Version}", package], check=True,
                              stdout=subprocess.PIPE, text=True).stdout
        found.append(Library(package, *text.split()))
    return found


LICENSES = "share/doc/ggufmill/licenses"


def copy_licenses(target, libraries, folder):
    os.makedirs(target)
    for library in libraries:
        own = os.path.join(folder, "licenses", library.name + ".txt")
        source = own if os.path.exists(own) else f"/usr/share/doc/{library.name}/copyright"
        shutil.copyfile(source, os.path.join(target, library.name + ".txt"))
    with open(os.path.join(target, "README"), "w") as file:
        file.write(LICENSES_README.format(distribution=distribution()))
        for library in libraries:
            file.write(f"{library.name}: {library.source} {library.version}\n")


def strip(root):
    for name in files_below(root):
        if name.endswith((".dll", ".exe")):
            subprocess.run([STRIP, "--strip-unneeded", os.path.join(root, name)], check=True)


def stage(build, root):
    for component in ("program", "development", "ik"):
        subprocess.run(["cmake", "--install", build, "--prefix", root, "--component", component], check=True,
                       stdout=subprocess.DEVNULL)
    shutil.rmtree(os.path.join(root, "lib/pkgconfig"), ignore_errors=True)  # names paths of this machine
    strip(root)
    definitions = os.path.join(build, "pipeline/c_api/exports.def")
    subprocess.run([DLLTOOL, "-d", definitions, "-D", "libggufmill.dll", "-l", os.path.join(root, "lib/ggufmill.lib")],
                   check=True)


def pack(top, archive, when):
    """Write all files in order, with one time."""
    date = time.gmtime(max(when, 315532800))[:6]  # zip knows no time before 1980
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for name in files_below(top):
            info = zipfile.ZipInfo(name, date)
            info.external_attr = 0o100644 << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 0
            with open(os.path.join(top, name), "rb") as file:
                packed.writestr(info, file.read())


def main(build, version):
    when = int(os.environ["SOURCE_DATE_EPOCH"])
    name = f"ggufmill-{version}-windows-x86_64"
    root = os.path.join(build, "stage", name)
    shutil.rmtree(os.path.dirname(root), ignore_errors=True)
    stage(build, root)
    libraries = libraries_of(LIBRARIES)
    copy_licenses(os.path.join(root, LICENSES), libraries, LIBRARIES)
    list_packages(os.path.join(root, "lib/ggufmill/packages.tsv"), libraries)
    with open(os.path.join(root, "README.txt"), "w", newline="\r\n") as file:
        file.write(README.format(version=version))
    archive = os.path.join(build, name + ".zip")
    bill = os.path.join(build, name + ".spdx.json")
    pack(os.path.dirname(root), archive, when)
    write_bill(bill, root, name, version, libraries, archive, LICENSES, when)
    print(f"{archive}: {os.path.getsize(archive) / 1e6:.1f} MB, {len(libraries)} libraries of {distribution()}")


if __name__ == "__main__":
    main(*sys.argv[1:])
