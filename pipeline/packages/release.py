#!/usr/bin/env python3
"""Gather what a maintainer uploads for a version; called by `./dev dist`.

usage: release.py VERSION COMMIT RELEASE_FOLDER BUILD_FOLDER...

Copies what each SHA256SUMS of the BUILD_FOLDERs lists into RELEASE_FOLDER, and writes there
  pypi/        the wheels and the sources alone, as `twine upload` wants them
  homebrew/, nix/   the formula and the package that install the archives from the page of the release
  NOTES.md     what CHANGELOG.md says about the version: its section, or "Unreleased"
  SHA256SUMS   of all files
  UPLOAD.md    the commands
"""

import os
import re
import shutil
import sys

import archive
import recipes

UPLOAD = """# Uploading ggufmill {version}
Run these commands in this folder, in this order. PyPI and the page of releases refuse to replace a file.

1. The files are complete and unchanged:
   ```sh
   sha256sum --check SHA256SUMS
   twine check --strict pypi/*
   ```
2. PyPI, first the index for trials (`pip install --index-url https://test.pypi.org/simple/ ggufmill=={version}`), then the real one:
   ```sh
   twine upload --repository testpypi pypi/*
   twine upload pypi/*
   ```
3. The tag, and the release with notes and all other files:
   ```sh
   git tag --annotate v{version} --message "ggufmill {version}" {commit}
   git push origin v{version}
   gh release create v{version} --title "ggufmill {version}" --notes-file NOTES.md SHA256SUMS files/*
   ```
{container}{recipes}
Afterwards, in an empty folder:
```sh
uvx ggufmill@{version} --version
```
"""

CONTAINER = """4. The container image; REGISTRY is yours:
   ```sh
{commands}
   ```
"""

RECIPES = """{number}. Homebrew and Nix, once the release is there; YOU/TAP is your tap:
   ```sh
   cp homebrew/ggufmill.rb "$(brew --repository YOU/TAP)/Formula/"
   brew audit --strict --online YOU/TAP/ggufmill && brew install YOU/TAP/ggufmill && brew test YOU/TAP/ggufmill
   nix-build --expr 'with import <nixpkgs> {{ }}; callPackage nix/package.nix {{ }}'
   ```
{warning}"""

NO_REPOSITORY = """   **They name files of the machine that made them**, because pyproject.toml has no `Repository` in `[project.urls]`. Add it, and make the
   release again.
"""


def notes_of(changelog, version):
    """Return the section of a version, or else the one called Unreleased."""
    sections = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL))
    for title in (*(title for title in sections if re.match(rf"{re.escape(version)}\b", title)), "Unreleased"):
        if title in sections:
            return sections[title].strip() + "\n"
    return archive.fail(f"CHANGELOG.md has no section {version} and none that is called Unreleased")


def listed_in(build):
    with open(os.path.join(build, "SHA256SUMS"), encoding="utf-8") as file:
        return [line.split()[1] for line in file]


def main(version, commit, release, *builds):
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
    shutil.rmtree(release, ignore_errors=True)
    for folder in ("files", "pypi"):
        os.makedirs(os.path.join(release, folder))
    for build in builds:
        for name in listed_in(build):
            folder = "pypi" if name.endswith((".whl", ".tar.gz")) else "files"
            shutil.copy2(os.path.join(build, name), os.path.join(release, folder, name))
    with open(os.path.join(source, "CHANGELOG.md"), encoding="utf-8") as file:
        notes = notes_of(file.read(), version)
    with open(os.path.join(release, "NOTES.md"), "w", encoding="utf-8") as file:
        file.write(notes)
    for name in ("homebrew", "nix"):
        shutil.copytree(os.path.join(builds[0], "recipes", name), os.path.join(release, name))
    images = [name for name in sorted(os.listdir(os.path.join(release, "files"))) if "-oci-" in name]
    commands = "\n".join(f"   skopeo copy oci-archive:files/{name} docker://REGISTRY/ggufmill:{version}" for name in images)
    with open(os.path.join(release, "UPLOAD.md"), "w", encoding="utf-8") as file:
        file.write(UPLOAD.format(version=version, commit=commit, container=CONTAINER.format(commands=commands) if images else "",
                                 recipes=RECIPES.format(number=5 if images else 4, warning="" if recipes.repository() else NO_REPOSITORY)))
    names = [name for name in archive.files_below(release) if os.path.dirname(name)]
    with open(os.path.join(release, "SHA256SUMS"), "w", encoding="utf-8") as file:
        file.writelines(f"{archive.sha('sha256', os.path.join(release, name))}  {name}\n" for name in names)
    megabytes = sum(os.path.getsize(os.path.join(release, name)) for name in names) / 1e6
    print(f"{release}: {len(names)} files, {megabytes:.1f} MB, notes of {len(notes.splitlines())} lines")


if __name__ == "__main__":
    main(*sys.argv[1:])
