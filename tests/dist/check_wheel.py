"""check_wheel.py WHEEL: checks a wheel by the rules of PEP 600 and auditwheel, from the files alone.

- It needs no library from outside but those that every Linux of its platform has.
- No symbol is newer than the platform: GLIBC, GLIBCXX and CXXABI, as in auditwheel's manylinux-policy.json.
- RECORD has every file, with its hash and size.
- No two files inside have one SONAME, and no SONAME but those loaded by name is that of a library of a distribution.
"""

import base64
import csv
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import zipfile

EXTERNAL = set("libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1 libresolv.so.2 libstdc++.so.6 libgcc_s.so.1".split())
EXTERNAL |= {"ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
# From GCC's ABI history: the releases of libstdc++ that accompany the versions of glibc in the policies.
NEWEST = {28: ((3, 4, 24), (1, 3, 11)), 31: ((3, 4, 28), (1, 3, 12)), 34: ((3, 4, 29), (1, 3, 13)), 35: ((3, 4, 30), (1, 3, 13)), 39: ((3, 4, 33), (1, 3, 15))}


def fail(text):
    sys.exit(f"check_wheel.py: {text}")


def read(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def number(text):
    return tuple(int(part) for part in text.split("."))


wheel = sys.argv[1]
major, minor = number(".".join(re.search(r"manylinux_(\d+)_(\d+)_", os.path.basename(wheel)).groups()))
cxx, abi = next((NEWEST[known] for known in sorted(NEWEST, reverse=True) if known <= minor), None) or fail(f"glibc {major}.{minor} is too old")
with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as file:
    file.extractall(folder)
    names = [name for name in file.namelist()]
    (record,) = [name for name in names if name.endswith(".dist-info/RECORD")]
    rows = {row[0]: row[1:] for row in csv.reader(file.read(record).decode().splitlines())}
    if sorted(rows) != sorted(names):
        fail(f"RECORD differs from the contents: {sorted(set(rows) ^ set(names))}")
    for name, (digest, size) in rows.items():
        content = file.read(name)
        if name != record and (digest, int(size)) != (
            "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode(),
            len(content),
        ):
            fail(f"RECORD is wrong for {name}")
    elf = [name for name in names if file.read(name)[:4] == b"\x7fELF"]
    inside, sonames = {os.path.basename(name) for name in elf}, []
    for name in elf:
        dynamic = read("readelf", "-dW", os.path.join(folder, name))
        foreign = set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)) - inside - EXTERNAL
        if foreign:
            fail(f"{name} needs {foreign}")
        sonames += re.findall(r"\(SONAME\).*\[(.*)\]", dynamic)
        for group, version in re.findall(r"Name: (GLIBC|GLIBCXX|CXXABI)_([0-9.]+) +Flags", read("readelf", "-VW", os.path.join(folder, name))):
            if number(version) > {"GLIBC": (major, minor), "GLIBCXX": cxx, "CXXABI": abi}[group]:
                fail(f"{name} needs {group}_{version}, newer than manylinux_{major}_{minor}")
    if len(set(sonames)) != len(sonames):
        fail(f"two files have one SONAME: {sorted(sonames)}")
    common = [name for name in sonames if not re.search(r"-[0-9a-f]{8}\.so", name) and not name.startswith(("libggufmill.", "libtbbmalloc."))]
    if common:
        fail(f"names that other packages use: {common}")
print(f"{len(elf)} ELF files, {os.path.getsize(wheel) / 1e6:.1f} MB")
