#!/usr/bin/env python3
"""Fill in the recipes for clusters (recipes/README.md) for the archive in BUILD_FOLDER; called by `./dev dist`.

usage: recipes.py BUILD_FOLDER VERSION

Writes BUILD_FOLDER/recipes.
"""

import os
import shutil
import sys

import archive


def main(build, version):
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "recipes")
    target = os.path.join(build, "recipes")
    machine = archive.System(build).machine
    name = f"ggufmill-{version}-linux-{machine}"
    values = {
        **{"VERSION": version, "NAME": name, "ARCHIVE": name + ".tar.zst", "MACHINE": machine},
        "SHA256": archive.sha("sha256", os.path.join(build, name + ".tar.zst")),
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
