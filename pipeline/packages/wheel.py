#!/usr/bin/env python3
"""Pack a build into a Python wheel; called by `./dev dist`.

usage: wheel.py BUILD_FOLDER VERSION [--unbundled]

Writes BUILD_FOLDER/ggufmill-VERSION-py3-none-PLATFORM.whl: the module, libggufmill, the kernel modules and the program;
and, with .spdx.json in place of .whl, a software bill of materials.
The libraries that these need are in the wheel too, under names of their own, except those that every Linux of PLATFORM
has (PEP 600). PLATFORM is manylinux_X_Y_ARCH, where X.Y is the version of the C library whose symbols are used. The
same commit and the same packages give the same bytes in every folder: SOURCE_DATE_EPOCH is the time of everything.

--unbundled   for a test of any build: no other libraries; PLATFORM is linux_ARCH
"""

import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile

import archive

# Libraries that PEP 600 lets a wheel use, as far as ggufmill needs them, and the newest version of each group of symbols that the
# platforms have: {version of the C library: newest GLIBCXX}, as in auditwheel's manylinux-policy.json.
ALLOWED = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libresolv.so.2", "libstdc++.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
GLIBCXX = {(2, 28): (3, 4, 24), (2, 31): (3, 4, 28), (2, 34): (3, 4, 29), (2, 35): (3, 4, 30), (2, 39): (3, 4, 33), (2, 41): (3, 4, 33)}
PYTHON = ">=3.9"

METADATA = """Metadata-Version: 2.1
Name: ggufmill
Version: {version}
Summary: Model weights quantized, decoded and converted between GGUF and safetensors, to the byte as llama.cpp does
License: MIT
Requires-Python: {python}
Provides-Extra: arrays
Requires-Dist: numpy; extra == "arrays"
Description-Content-Type: text/markdown

{description}"""


def version_of(text):
    return tuple(int(part) for part in text.split("."))


def symbol_versions(path):
    """Return {library: set of versions} of the symbols that a file needs, as "GLIBC_2.34"."""
    needed, library = {}, None
    for line in archive.output_of("readelf", "-VW", path).splitlines():
        if match := re.search(r"Version: \d+ +File: (\S+)", line):
            library = match[1]
        elif library and (match := re.search(r"Name: (\S+) +Flags", line)):
            needed.setdefault(library, set()).add(match[1])
        elif "Version symbols section" in line or "Version definition section" in line:
            library = None
    return needed


def platform_of(files):
    """Return the least (X, Y) for which manylinux_X_Y has everything that the files use from outside."""
    newest = {"GLIBC": (2, 17), "GLIBCXX": (3, 4)}
    for path in files:
        for library, versions in symbol_versions(path).items():
            for name in versions if library in ALLOWED else ():
                group, _, number = name.partition("_")
                if group in newest and re.fullmatch(r"[0-9.]+", number):
                    newest[group] = max(newest[group], version_of(number))
    for libc, cxx in sorted(GLIBCXX.items()):
        if newest["GLIBCXX"] <= cxx:
            return max(newest["GLIBC"], libc)
    return archive.fail(f"symbols of GLIBCXX_{newest['GLIBCXX']}, which no platform of manylinux is known to have")


def symbols_of(path):
    """Return the names of the dynamic symbols of a file."""
    lines = archive.output_of("readelf", "--dyn-syms", "-W", path).splitlines()
    return [words[7] for words in map(str.split, lines) if len(words) > 7 and words[0].endswith(":")]


def graft_libraries(root, packages):
    """Copy the libraries that the files need into ggufmill.libs, under names that no other package has."""
    folder = os.path.join(root, "ggufmill.libs")
    os.makedirs(folder)
    own = archive.own_elf_files(root)
    names = {}
    system = packages.system
    libraries = archive.needed_libraries(system, own)
    for known, others in archive.LOADED_BY_NAME.items():
        libraries.update({name: os.path.join(os.path.dirname(libraries[known]), name) for name in others})
    for name, path in sorted(libraries.items()):
        if name in ALLOWED:
            continue
        package = packages.owner_of(path)
        path = os.path.realpath(system.path(path))
        target = os.path.join(folder, name)
        if name.startswith("libicudata."):
            archive.make_small_icu_data(system, path, target)
        else:
            shutil.copyfile(path, target)
        stem, dot, rest = name.partition(".so")
        names[name] = f"{stem}-{archive.sha('sha256', target)[:8]}{dot}{rest}"
        if name in sum(archive.LOADED_BY_NAME.values(), []):
            names[name] = name  # loaded by this name
        os.rename(target, os.path.join(folder, names[name]))
        package.files.append(f"ggufmill.libs/{names[name]}")
    for path in own + [os.path.join(folder, name) for name in names.values()]:
        os.chmod(path, 0o755)
        replaced = [name for name in archive.needed_by(path) if names.get(name, name) != name]
        changes = [sum((["--replace-needed", name, names[name]] for name in replaced), [])]
        if os.path.dirname(path) == folder:
            changes += [["--set-soname", os.path.basename(path)], ["--force-rpath", "--set-rpath", "$ORIGIN"]]
        elif set(archive.needed_by(path)) & set(names):
            above = os.path.relpath(folder, os.path.dirname(path))
            changes.append(["--force-rpath", "--set-rpath", f"$ORIGIN/{above}"])
        symbols = symbols_of(path)
        for change in changes:  # patchelf mixes up several in one call
            if change:
                subprocess.run(["patchelf", *change, path], check=True)
        if symbols_of(path) != symbols:
            archive.fail(f"patchelf changed the names of symbols in {path}")


def check_externals(root):
    """Fail unless every library that a file needs is in the wheel or may be used from the system."""
    inside = {os.path.basename(path) for path in archive.own_elf_files(root)}
    for path in archive.own_elf_files(root):
        foreign = set(archive.needed_by(path)) - inside - ALLOWED
        if foreign:
            archive.fail(f"{os.path.relpath(path, root)} needs {', '.join(sorted(foreign))}, which a wheel must contain")


def write_info(root, version, tag, source, packages):
    info = os.path.join(root, f"ggufmill-{version}.dist-info")
    os.makedirs(os.path.join(info, "licenses"), exist_ok=True)
    with open(os.path.join(source, "pipeline/python/README.md"), encoding="utf-8") as file:
        description = file.read()
    texts = {
        "METADATA": METADATA.format(version=version, python=PYTHON, description=description),
        "WHEEL": f"Wheel-Version: 1.0\nGenerator: ggufmill\nRoot-Is-Purelib: false\nTag: {tag}\n",
        "entry_points.txt": "[console_scripts]\nggufmill = ggufmill.__main__:main\n",
    }
    for name, text in texts.items():
        with open(os.path.join(info, name), "w", encoding="utf-8") as file:
            file.write(text)
    for name in ("LICENSE", "NOTICE"):
        shutil.copyfile(os.path.join(source, name), os.path.join(info, "licenses", name))
    if packages:
        archive.copy_licenses(os.path.join(info, "licenses/packages"), packages)
        archive.list_packages(os.path.join(root, "ggufmill/lib/ggufmill/packages.tsv"), packages)
    record = os.path.join(info, "RECORD")
    rows = []
    for name in archive.files_below(root):
        path = os.path.join(root, name)
        with open(path, "rb") as file:
            digest = base64.urlsafe_b64encode(hashlib.sha256(file.read()).digest()).rstrip(b"=").decode()
        rows.append(f"{name},sha256={digest},{os.path.getsize(path)}\n")
    with open(record, "w", encoding="utf-8") as file:
        file.writelines([*rows, f"{os.path.relpath(record, root)},,\n"])


def pack(root, wheel, when):
    """Write all files in order with one time, the metadata last, as PEP 427 recommends."""
    time_of_all = max(time.gmtime(when)[:6], (1980, 1, 1, 0, 0, 0))
    names = sorted(archive.files_below(root), key=lambda name: (".dist-info/" in name, name))
    with zipfile.ZipFile(wheel, "w") as file:
        for name in names:
            path = os.path.join(root, name)
            entry = zipfile.ZipInfo(name, time_of_all)
            entry.create_system = 3  # Unix
            entry.external_attr = (0o100755 if os.stat(path).st_mode & 0o100 else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            with open(path, "rb") as content:
                file.writestr(entry, content.read(), compresslevel=9)


def main(build, version, is_bundled):
    build = os.path.abspath(build)
    source = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
    when = int(os.environ.get("SOURCE_DATE_EPOCH") or time.time())
    stage, root = os.path.join(build, "stage-wheel"), os.path.join(build, "stage-wheel/wheel")
    shutil.rmtree(stage, ignore_errors=True)
    os.umask(0o022)
    for component in ("program", "python"):
        command = ["cmake", "--install", build, "--prefix", os.path.join(stage, "all"), "--component", component]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    ((package, _, _),) = [found for found in os.walk(os.path.join(stage, "all")) if found[0].endswith("/ggufmill") and "__init__.py" in found[2]]
    target = os.path.join(root, "ggufmill")
    os.makedirs(root)
    folders = {name: os.path.realpath(os.path.join(package, name)) for name in ("bin", "lib")}
    shutil.copytree(package, target, ignore=lambda folder, _: ["bin", "lib"] if folder == package else [])
    os.makedirs(os.path.join(target, "bin"))
    program = os.path.join(folders["bin"], "ggufmill")
    if os.path.exists(os.path.join(stage, "all/libexec/ggufmill")):  # of an archive, whose bin/ggufmill is its launcher
        program = os.path.join(stage, "all/libexec/ggufmill")
    shutil.copy(program, os.path.join(target, "bin/ggufmill"))
    shutil.copytree(os.path.join(folders["lib"], "ggufmill"), os.path.join(target, "lib/ggufmill"))
    (library,) = [name for name in os.listdir(folders["lib"]) if re.fullmatch(r"libggufmill\.so\.\d+\.\d+", name)]
    shutil.copy(os.path.realpath(os.path.join(folders["lib"], library)), os.path.join(target, "lib", library))
    system = archive.System(build)
    archive.strip(system, root)
    packages = None
    name = f"linux_{system.machine}"
    if is_bundled:
        packages = archive.Packages(system)
        graft_libraries(root, packages)
        for header in archive.HEADERS:
            packages.owner_of(os.path.join("/usr/include", header))
        archive.copy_certificates(root, "ggufmill/lib/ggufmill/certificates.pem", packages)
        check_externals(root)
        libc = platform_of(archive.own_elf_files(root))
        name = f"manylinux_{libc[0]}_{libc[1]}_{system.machine}"
    tag = f"py3-none-{name}"
    write_info(root, version, tag, source, packages)
    wheel = os.path.join(build, f"ggufmill-{version}-{tag}.whl")
    pack(root, wheel, when)
    if is_bundled:
        stem = wheel.removesuffix(".whl")
        licenses = f"ggufmill-{version}.dist-info/licenses/packages"
        archive.write_bill(stem + ".spdx.json", root, os.path.basename(stem), version, packages, wheel, licenses, when)
    print(f"{wheel}: {os.path.getsize(wheel) / 1e6:.1f} MB")


if __name__ == "__main__":
    arguments = [each for each in sys.argv[1:] if each != "--unbundled"]
    if len(arguments) != 2:
        sys.exit(__doc__)
    main(*arguments, is_bundled="--unbundled" not in sys.argv)
