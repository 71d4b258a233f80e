#!/usr/bin/env python3
"""Pack what the preset `dist` built into one archive that runs on every Linux; called by `./dev dist`.

usage: archive.py BUILD_FOLDER VERSION

Writes into BUILD_FOLDER:
  ggufmill-VERSION-linux-ARCH.tar.zst        the program, and every library that it needs, the C library among them
  ggufmill-VERSION-linux-ARCH.spdx.json      a software bill of materials (SPDX 2.3)

The libraries are those of the packages of this Debian release, for the architecture of the build: if it was cross-compiled,
those in the folder that the compiler took for the root folder (sysroot). The same commit and the same packages give the same bytes
in every folder: SOURCE_DATE_EPOCH is the time of everything.
"""

import glob
import hashlib
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import time

# Headers of packages that become parts of the program.
HEADERS = ["boost/version.hpp", "hwy/highway.h", "kainjow/mustache.hpp"]
# Libraries that others load by name, beside those that load them.
LOADED_BY_NAME = {"libtbb.so.12": ["libtbbmalloc.so.2"]}
# libc6's libraries for modules that were built for an older C library, which had them apart.
OLD_LIBC_PARTS = ["libdl.so.2", "libpthread.so.0", "librt.so.1"]
# The only data of ICU that the program reads; the rest, 30 MB, is for languages. Other tables are part of libicuuc.
ICU_ITEMS = ["nfkc.nrm"]
MACHINES = {62: "x86_64", 183: "aarch64"}  # by e_machine
CERTIFICATES = "/usr/share/ca-certificates/mozilla"
COMMON_LICENSES = "/usr/share/common-licenses"

README = """ggufmill {version} for Linux, {machine}, with all libraries that it needs

bin/ggufmill runs from wherever this folder is, by its path, by PATH, or through a symbolic link to it:
  ln -s "$PWD/bin/ggufmill" ~/.local/bin/
  export MANPATH="$PWD/share/man:"                                          manual pages
  . share/bash-completion/completions/ggufmill                              completion

`ggufmill --version --verbose` lists the libraries and the files that are in use. Kernels for the tensor types of
ik_llama.cpp are used with `--kernel-dir lib/ggufmill-ik`. share/doc/ggufmill has the licenses.

The library (include, lib/libggufmill.so) and the Python module (lib/python, for Python 3.9 or later with numpy) are loaded into
programs of the system and use its C library, which must be glibc {glibc} or later:
  export PYTHONPATH="$PWD/lib/python"

Servers are checked with the certificates of the system, else with those in lib/ggufmill/certificates.pem. Host names are
looked up in /etc/hosts and by DNS, whatever /etc/nsswitch.conf names.
"""

LICENSES_README = """The licenses of the packages whose libraries, or parts of whose headers, are in this archive; they refer to those in common/.
{distribution} built them, from these sources, which are at https://snapshot.debian.org/package/NAME/VERSION/ :

"""


def fail(message):
    sys.exit(f"dev dist: {message}")


def output_of(*command, **options):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **options).stdout


def sha(kind, path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, kind).hexdigest() if hasattr(hashlib, "file_digest") else hashlib.new(kind, file.read()).hexdigest()


def is_elf(path):
    if os.path.islink(path) or not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def files_below(folder):
    """Return the paths of all files and links, relative to the folder, sorted."""
    found = []
    for above, folders, files in os.walk(folder):
        links = [name for name in folders if os.path.islink(os.path.join(above, name))]
        found += [os.path.relpath(os.path.join(above, name), folder) for name in files + links]
    return sorted(found)


class System:
    """The system whose packages the build uses: this one, or the root folder of a cross-compiler."""

    def __init__(self, build):
        with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as file:
            cache = dict(re.findall(r"^(\w+):\w+=(.*)$", file.read(), re.MULTILINE))
        self.root = os.path.realpath(cache["CMAKE_SYSROOT"]) if cache.get("CMAKE_SYSROOT") else ""
        self.strip = cache["CMAKE_STRIP"]
        with open(os.path.join(build, "bin/ggufmill"), "rb") as file:
            kind = struct.unpack("<18xH", file.read(20))[0]
        if kind not in MACHINES:
            fail(f"{build} has programs for a machine that is not known here: {kind}")
        self.machine = MACHINES[kind]
        self.compiler = f"{self.machine}-linux-gnu-gcc" if self.root else "gcc"
        folder = f"{self.machine}-linux-gnu"
        self.libraries = [f"/lib/{folder}", f"/usr/lib/{folder}", "/lib", "/usr/lib", "/lib64"]

    def path(self, path):
        """Return the path from here of one that is absolute in the system."""
        return self.root + path

    def dpkg(self, *arguments, **options):
        folder = ["--admindir", self.path("/var/lib/dpkg")] if self.root else []
        return subprocess.run(["dpkg-query", *folder, *arguments], stdout=subprocess.PIPE, text=True, **options)


class Package:
    """A package of the distribution."""

    def __init__(self, system, name):
        fields = "${Version}\\n${Architecture}\\n${source:Package}\\n${source:Version}\\n${Homepage}"
        values = system.dpkg("-W", "-f", fields, name, check=True).stdout.split("\n")
        self.version, self.architecture, self.source, self.source_version, self.homepage = values
        self.name = name.split(":")[0]
        self.files = []  # in the archive, relative to its folder
        self.copyright = system.path(f"/usr/share/doc/{self.name}/copyright")
        self.license = ""  # the file with its license in the archive


class Packages:
    def __init__(self, system):
        self.system = system
        self.by_name = {}

    def add(self, name):
        return self.by_name.setdefault(name.split(":")[0], Package(self.system, name))

    def owner_of(self, path):
        """Return the package that a file of the system is from. Links from /lib to /usr/lib make two names for one file."""
        real = os.path.realpath(self.system.path(path)).removeprefix(self.system.root)
        for candidate in (path, real, real.removeprefix("/usr"), "/usr" + real):
            found = self.system.dpkg("-S", candidate, stderr=subprocess.DEVNULL)
            if found.returncode == 0:
                return self.add(found.stdout.split(": ")[0])
        return fail(f"{path} is from no package of this system: the archive has libraries of packages alone")

    def __iter__(self):
        return iter(sorted(self.by_name.values(), key=lambda package: package.name))


def needed_by(path):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", output_of("readelf", "-dW", path))


def needed_libraries(system, elf_files):
    """Return {name: path in the system} of the libraries that these files need, other than each other."""
    elf_files = list(elf_files)
    own = {os.path.basename(path) for path in elf_files}
    found, wanted = {}, [(file, name) for file in elf_files for name in needed_by(file)]
    while wanted:
        file, name = wanted.pop()
        if name in own or name in found:
            continue
        paths = [f"{folder}/{name}" for folder in system.libraries if os.path.exists(system.path(f"{folder}/{name}"))]
        if not paths:
            fail(f"{file} needs a library that is missing: {name}")
        found[name] = paths[0]
        wanted += [(paths[0], further) for further in needed_by(system.path(paths[0]))]
    return found


def own_elf_files(root):
    return [path for path in (os.path.join(root, name) for name in files_below(root)) if is_elf(path)]


def make_small_icu_data(system, library, into):
    """Write a libicudata with ICU_ITEMS alone."""
    work = into + ".work"
    os.makedirs(work)
    symbol = re.search(r"(\d+): ([0-9a-f]+)\s+(\S+)\s+OBJECT.* (icudt\d+_dat)\n", output_of("readelf", "-Ws", library))
    address, size, name = int(symbol[2], 16), int(symbol[3], 0), symbol[4]
    for row in output_of("readelf", "-WS", library).splitlines():
        fields = re.match(r"\s*\[\s*\d+\] \S+\s+PROGBITS\s+([0-9a-f]+) ([0-9a-f]+) ([0-9a-f]+)", row)
        if fields and int(fields[1], 16) <= address < int(fields[1], 16) + int(fields[3], 16):
            offset = address - int(fields[1], 16) + int(fields[2], 16)
    with open(library, "rb") as file:
        file.seek(offset)
        data = file.read(size)
    stem = name.removesuffix("_dat") + ("l" if sys.byteorder == "little" else "b")
    whole, part = os.path.join(work, f"{stem}.dat"), os.path.join(work, "part", f"{stem}.dat")
    with open(whole, "wb") as file:
        file.write(data)
    os.makedirs(os.path.dirname(part))
    items = os.path.join(work, "items.txt")
    with open(items, "w") as file:
        file.write("\n".join(ICU_ITEMS) + "\n")
    tools = {"PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"}  # icupkg, genccode
    subprocess.run(["icupkg", "-d", work, "-x", items, whole], check=True, env=tools)
    subprocess.run(["icupkg", "-s", work, "-a", items, "new", part], check=True, env=tools)
    subprocess.run(["genccode", "-q", "-a", "gcc", "-e", name.removesuffix("_dat"), "-d", work, part], check=True, env=tools, stdout=subprocess.DEVNULL)
    subprocess.run([system.compiler, "-shared", "-nostdlib", "-Wl,--build-id=none", "-Wl,-z,noexecstack", f"-Wl,-soname,{os.path.basename(into)}", "-o", into,
                    *glob.glob(os.path.join(work, "*.[sS]"))], check=True)
    if name not in output_of("readelf", "-Ws", into):
        fail(f"{name} is missing from {into}")
    shutil.rmtree(work)


def search_no_system_folders(path):
    """Set DF_1_NODEFLIB, so that what this file loads by name is never a library of the system the archive runs on."""
    program_dynamic, flags_1, no_default = 2, 0x6FFFFFFB, 0x800
    with open(path, "r+b") as file:
        header = struct.unpack("<16sHHIQQQIHHHHHH", file.read(64))
        if header[0][4:6] != b"\2\1":
            fail(f"{path} is not a 64-bit little-endian file")
        for i in range(header[10]):
            file.seek(header[5] + i * header[9])
            kind, _, offset, _, _, size, _, _ = struct.unpack("<IIQQQQQQ", file.read(56))
            if kind != program_dynamic:
                continue
            file.seek(offset)
            entries = list(struct.iter_unpack("<qQ", file.read(size)))
            tags = [tag for tag, _ in entries]
            at = tags.index(flags_1) if flags_1 in tags else tags.index(0)
            if tags[at] == 0 and (at + 1 >= len(tags) or tags[at + 1] != 0):
                fail(f"{path} has no room for DT_FLAGS_1")
            file.seek(offset + 16 * at)
            file.write(struct.pack("<qQ", flags_1, (entries[at][1] if tags[at] else 0) | no_default))
            return


def bundle_libraries(root, packages):
    """Copy the libraries that the files in `root` need into lib/runtime."""
    system = packages.system
    runtime, libc_folder = os.path.join(root, "lib/runtime"), os.path.join(root, "lib/runtime/libc")
    os.makedirs(libc_folder)
    libraries = needed_libraries(system, own_elf_files(root))
    for known, names in {"libc.so.6": OLD_LIBC_PARTS, **LOADED_BY_NAME}.items():
        for name in names:
            libraries[name] = os.path.join(os.path.dirname(libraries[known]), name)
    for name, path in sorted(libraries.items()):
        package = packages.owner_of(path)
        path = os.path.realpath(system.path(path))
        folder = libc_folder if package.source == "glibc" else runtime
        target = os.path.join(folder, name)
        if name.startswith("libicudata."):
            make_small_icu_data(system, path, target)
        else:
            shutil.copyfile(path, target)
        os.chmod(target, 0o755)
        if folder == runtime:  # the loader refuses such flags of its own
            search_no_system_folders(target)
        package.files.append(os.path.relpath(target, root))


def strip(system, root):
    for path in own_elf_files(root):
        os.chmod(path, 0o755)
        subprocess.run([system.strip, "--strip-unneeded", "--remove-section=.comment", path], check=True)


def copy_certificates(root, file, packages):
    """Write the certificates of the distribution to a file of `root`, and none that somebody added to this machine."""
    names = sorted(glob.glob(packages.system.path(CERTIFICATES) + "/*.crt"))
    if not names:
        fail(f"no certificates in {CERTIFICATES}: install ca-certificates")
    with open(os.path.join(root, file), "w") as target:
        for name in names:
            with open(name) as one:
                target.write(one.read().rstrip("\n") + "\n")
    packages.add("ca-certificates").files.append(file)


def distribution():
    """Return the name of this system: "Debian GNU/Linux 12 (bookworm)"."""
    with open("/etc/os-release") as file:
        system = dict(line.rstrip("\n").replace('"', "").split("=", 1) for line in file if "=" in line)
    return system.get("PRETTY_NAME", "an unknown distribution")


def copy_licenses(folder, packages, with_links=True):
    """Copy the license of each package. Without links, files whose text is there already are named in README alone."""
    os.makedirs(os.path.join(folder, "common"))
    common, first = set(), {}

    def put(source, name):
        with open(source, encoding="utf-8", errors="replace") as file:
            text = file.read()
        same = first.setdefault((os.path.dirname(name), text), name)
        if same == name:
            shutil.copyfile(source, os.path.join(folder, name))
        elif with_links:
            os.symlink(os.path.basename(same), os.path.join(folder, name))
        else:
            return same, text
        return name, text

    lines = []
    for package in packages:
        package.license, text = put(package.copyright, package.name + ".txt")
        common.update(name.rstrip(".") for name in re.findall(COMMON_LICENSES + r"/([A-Za-z0-9.-]+)", text))
        lines.append(f"{package.name} {package.version}: {package.source} {package.source_version}")
        if package.license != package.name + ".txt":
            lines[-1] += f", in {package.license}"
    names = sorted(name for name in common if os.path.isfile(os.path.join(COMMON_LICENSES, name)))
    for name in sorted(names, key=lambda name: (os.path.islink(os.path.join(COMMON_LICENSES, name)), name)):
        same, _ = put(os.path.join(COMMON_LICENSES, name), f"common/{name}")
        if same != f"common/{name}":
            lines.append(f"common/{name}: the text of {same}")
    with open(os.path.join(folder, "README"), "w") as file:
        file.write(LICENSES_README.format(distribution=distribution()) + "\n".join(lines) + "\n")


def list_packages(file, packages):
    """Write what `ggufmill --version --verbose` shows."""
    with open(file, "w") as file:
        for package in packages:
            file.write(f"{package.name}\t{package.version}\n")


def pack(root, archive, when):
    """Write all files in order, as root's, with one time; tar's bytes then depend on nothing else."""
    top = os.path.dirname(root)
    names = files_below(top)
    folders = {os.path.dirname(name) for name in names}
    folders |= {above for name in set(folders) for above in parents_of(name)}
    with subprocess.Popen(["zstd", "-19", "--long=27", "-T1", "-q", "-f", "-o", archive], stdin=subprocess.PIPE) as zstd:
        with tarfile.open(fileobj=zstd.stdin, mode="w|", format=tarfile.PAX_FORMAT) as tar:
            for name in sorted(folders | set(names)):
                info = tar.gettarinfo(os.path.join(top, name), name)
                info.uid = info.gid = 0
                info.uname = info.gname = "root"
                info.mtime = when
                is_executable = info.isdir() or info.issym() or info.mode & 0o100
                info.mode = 0o755 if is_executable else 0o644
                if info.isreg():
                    with open(os.path.join(top, name), "rb") as file:
                        tar.addfile(info, file)
                else:
                    tar.addfile(info)
        zstd.stdin.close()
    if zstd.returncode != 0:
        fail(f"zstd exited with code {zstd.returncode}")


def parents_of(name):
    while name := os.path.dirname(name):
        yield name


def write_bill(bill, root, name, version, packages, archive, licenses, when):
    """Write an SPDX 2.3 document: the archive, its packages, and their files. `licenses`: their folder in the archive."""
    def identity(kind, text):
        return f"SPDXRef-{kind}-" + re.sub(r"[^A-Za-z0-9.-]", "-", text)

    program = "SPDXRef-Package-ggufmill"
    listed = [{
        "SPDXID": program, "name": "ggufmill", "versionInfo": version, "packageFileName": os.path.basename(archive),
        "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "licenseConcluded": "MIT", "licenseDeclared": "MIT",
        "copyrightText": "Copyright (c) 2026 the ggufmill authors", "primaryPackagePurpose": "APPLICATION",
        "checksums": [{"algorithm": "SHA256", "checksumValue": sha("sha256", archive)}],
    }]
    relationships = [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": program}]
    owner = {}
    for package in packages:
        own = identity("Package", package.name)
        listed.append({
            "SPDXID": own, "name": package.name, "versionInfo": package.version, "supplier": "Organization: Debian",
            "downloadLocation": f"https://snapshot.debian.org/package/{package.source}/{package.source_version}/",
            **({"homepage": package.homepage} if package.homepage else {}), "filesAnalyzed": False,
            "sourceInfo": f"from the source package {package.source} {package.source_version} of {distribution()}",
            "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION", "copyrightText": "NOASSERTION",
            "licenseComments": f"{licenses}/{package.license}",
            "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                              "referenceLocator": f"pkg:deb/debian/{package.name}@{package.version.replace('+', '%2B').replace(':', '%3A')}"
                                                  f"?arch={package.architecture}"}],
        })
        kind = "CONTAINS" if package.files else "STATIC_LINK"
        relationships.append({"spdxElementId": program, "relationshipType": kind, "relatedSpdxElement": own})
        owner.update({file: own for file in package.files})
    files = []
    for file in files_below(root):
        path = os.path.join(root, file)
        if os.path.islink(path):
            continue
        own = identity("File", file)
        files.append({
            "SPDXID": own, "fileName": f"./{name}/{file}", "licenseConcluded": "NOASSERTION", "copyrightText": "NOASSERTION",
            "fileTypes": ["BINARY" if is_elf(path) else "TEXT"],
            "checksums": [{"algorithm": kind.upper(), "checksumValue": sha(kind, path)} for kind in ("sha1", "sha256")],
        })
        relationships.append({"spdxElementId": owner.get(file, program), "relationshipType": "CONTAINS", "relatedSpdxElement": own})
    document = {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": name,
        "documentNamespace": f"https://spdx.org/spdxdocs/{name}-{sha('sha256', archive)}",
        "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(when)), "creators": ["Tool: ggufmill-dist"]},
        "packages": listed, "files": files, "relationships": relationships,
    }
    with open(bill, "w") as file:
        json.dump(document, file, indent=1)
        file.write("\n")


def main(build, version):
    when = int(os.environ["SOURCE_DATE_EPOCH"])
    system = System(build)
    packages = Packages(system)
    name = f"ggufmill-{version}-linux-{system.machine}"
    root = os.path.join(build, "stage", name)
    shutil.rmtree(os.path.dirname(root), ignore_errors=True)
    os.umask(0o022)
    for component in ("program", "development", "ik", "python"):
        subprocess.run(["cmake", "--install", build, "--prefix", root, "--component", component], check=True, stdout=subprocess.DEVNULL)
    strip(system, root)
    bundle_libraries(root, packages)
    search_no_system_folders(os.path.join(root, "libexec/ggufmill"))
    for header in HEADERS:
        packages.owner_of(os.path.join("/usr/include", header))
    copy_certificates(root, "lib/ggufmill/certificates.pem", packages)
    licenses = "share/doc/ggufmill/licenses"
    copy_licenses(os.path.join(root, licenses), packages)
    list_packages(os.path.join(root, "lib/ggufmill/packages.tsv"), packages)
    glibc = packages.by_name["libc6"].version.partition("-")[0]
    with open(os.path.join(root, "README"), "w") as file:
        file.write(README.format(version=version, machine=system.machine, glibc=glibc))

    archive = os.path.join(build, name + ".tar.zst")
    pack(root, archive, when)
    write_bill(os.path.join(build, name + ".spdx.json"), root, name, version, packages, archive, licenses, when)
    print(f"{archive}: {os.path.getsize(archive) / 1e6:.1f} MB, {len(packages.by_name)} packages of {distribution()}")


if __name__ == "__main__":
    main(*sys.argv[1:])
