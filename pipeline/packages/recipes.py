#!/usr/bin/env python3
"""Fill in the recipes (recipes/README.md) for the archive in BUILD_FOLDER; called by `./dev dist`.

usage: recipes.py BUILD_FOLDER VERSION [OTHER_BUILD_FOLDER...]

Writes BUILD_FOLDER/recipes. The recipes for Homebrew and Nix also name the archives in OTHER_BUILD_FOLDERs, which are for other
machines, and where users download all of them: the release of VERSION in `Repository` of pyproject.toml (project.urls) or, as long
as there is none, the files themselves.
"""

import glob
import os
import shutil
import sys
import tomllib

import archive

SOURCE = os.path.dirname(os.path.abspath(__file__))


def repository():
    """Return the address of the repository that pyproject.toml names, or None."""
    with open(os.path.join(SOURCE, "../../pyproject.toml"), "rb") as file:
        return tomllib.load(file)["project"]["urls"].get("Repository")


def downloads(version, builds):
    """Return the address and the SHA-256 of the archive for each machine."""
    release = repository() and f"{repository().rstrip('/')}/releases/download/v{version}"
    found = {}
    for build in map(os.path.abspath, builds):
        for path in glob.glob(f"{glob.escape(build)}/ggufmill-{version}-linux-*.tar.zst"):
            machine = path.removesuffix(".tar.zst").rpartition("-")[2]
            found[machine] = (f"{release or 'file://' + build}/{os.path.basename(path)}", archive.sha("sha256", path))
    return dict(sorted(found.items(), reverse=True))


def brew_archives(found, version):
    """Return the part of the formula that names the archives, in a form that `brew style` accepts."""
    # Homebrew takes the version from an address of a release, and does not accept it twice.
    lines = {machine: [f'url "{address}"', *([f'version "{version}"'] if address.startswith("file:") else []), f'sha256 "{digest}"']
             for machine, (address, digest) in found.items()}
    if len(lines) == 1:
        return "\n".join("  " + line for one in lines.values() for line in one)
    lines = {machine: ["    " + line for line in of_one] for machine, of_one in lines.items()}
    return "\n".join(["  if Hardware::CPU.arm?", *lines["aarch64"], "  else", *lines["x86_64"], "  end"])


def brew_machine(found):
    names = {"x86_64": "x86_64", "aarch64": "arm64"}
    return "" if len(found) > 1 else "".join(f"  depends_on arch: :{names[machine]}\n" for machine in found)


def nix_archives(found):
    entries = [f'    {machine}-linux = {{\n      url = "{address}";\n      sha256 = "{digest}";\n    }};' for machine, (address, digest) in found.items()]
    return "\n".join(entries)


def main(build, version, *others):
    source = os.path.join(SOURCE, "recipes")
    target = os.path.join(build, "recipes")
    machine = archive.System(build).machine
    name = f"ggufmill-{version}-linux-{machine}"
    found = downloads(version, (build, *others))
    values = {
        **{"VERSION": version, "NAME": name, "ARCHIVE": name + ".tar.zst", "MACHINE": machine},
        "SHA256": found[machine][1],
        "BREW_ARCHIVES": brew_archives(found, version),
        "BREW_MACHINE": brew_machine(found),
        "NIX_ARCHIVES": nix_archives(found),
    }
    shutil.rmtree(target, ignore_errors=True)
    for file in archive.files_below(source):
        with open(os.path.join(source, file), encoding="utf-8") as template:
            text = template.read()
        if file.endswith(".in"):
            for key, value in values.items():
                text = text.replace(f"@{key}@", value)
        into = os.path.join(target, file.removesuffix(".in").replace("easyconfig.eb", f"ggufmill-{version}.eb"))
        os.makedirs(os.path.dirname(into), exist_ok=True)
        with open(into, "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
