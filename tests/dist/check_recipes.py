"""check_recipes.py BUILD_FOLDER: carries out what the recipes in BUILD_FOLDER/recipes say, without Spack and EasyBuild.

It shows that the recipes are of the language of these tools (Python), name the archive and its checksum, and install what
they check for. It cannot show that the tools accept them. The package of conda is built and tested with rattler-build;
without that, it is reported as skipped.
"""

import glob
import hashlib
import os
import runpy
import shutil
import subprocess
import sys
import tempfile
import types


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def check_program(prefix, work):
    run = subprocess.run([f"{prefix}/bin/ggufmill", "kernels"], cwd=work, stdout=subprocess.PIPE, check=True, text=True)
    assert "reference.so" in run.stdout and "refused" not in run.stdout, run.stdout


def easybuild(build, work):
    (path,) = glob.glob(f"{build}/recipes/*.eb")
    recipe = runpy.run_path(path, {"SYSTEM": {"name": "system", "version": "system"}})
    (source,) = recipe["sources"]
    archive = os.path.join(build, source["filename"])
    assert recipe["checksums"] == [digest(archive)]
    subprocess.run(source["extract_cmd"] % archive, shell=True, check=True, cwd=work)
    (prefix,) = glob.glob(f"{work}/ggufmill-*")
    for name in recipe["sanity_check_paths"]["files"]:
        assert os.path.isfile(os.path.join(prefix, name)), name
    for name in [*recipe["sanity_check_paths"]["dirs"], *recipe["modextrapaths"].values()]:
        assert os.path.isdir(os.path.join(prefix, name)), name
    for command in recipe["sanity_check_commands"]:
        environment = {**os.environ, "PATH": f"{prefix}/bin"}
        subprocess.run(command.split(), check=True, env=environment, stdout=subprocess.DEVNULL)
    return prefix


class Path(str):
    def __getattr__(self, name):
        return Path(os.path.join(self, name))


def spack(build, unpacked, work):
    versions = []
    package = types.ModuleType("spack.package")
    package.Package = object
    package.version = lambda *names, **values: versions.append((names, values))
    package.conflicts = package.requires = package.depends_on = lambda *_, **__: None
    package.run_after = lambda _: lambda function: function
    package.install_tree = lambda source, target: shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
    package.Executable = lambda path: lambda *arguments: subprocess.run([path, *arguments], check=True, stdout=subprocess.DEVNULL)
    package.__all__ = [name for name in vars(package) if not name.startswith("_")]
    sys.modules.update({"spack": types.ModuleType("spack"), "spack.package": package})
    recipe = runpy.run_path(f"{build}/recipes/spack/packages/ggufmill/package.py")["Ggufmill"]()
    ((_, values),) = versions
    assert values["sha256"] == digest(values["url"].removeprefix("file://"))
    recipe.prefix = Path(os.path.join(work, "prefix"))
    before = os.getcwd()
    os.chdir(unpacked)
    recipe.install(None, recipe.prefix)
    os.chdir(before)
    recipe.check_install()
    check_program(recipe.prefix, work)


def conda(build, work):
    """Build the package of conda, and test it, with rattler-build. Prints whether that passed or was skipped."""
    try:
        import rattler_build
    except ImportError:
        print("skipped: the recipe for conda, which needs rattler-build (pip install py-rattler-build)")
        return
    output = os.path.join(work, "conda")
    rattler_build.build_recipes([f"{build}/recipes/conda/recipe.yaml"], output_dir=output, test="native", channel=[])
    (package,) = glob.glob(f"{output}/*/ggufmill-*.conda")
    print(f"ok: the recipe for conda, with rattler-build: {os.path.basename(package)}, {os.path.getsize(package) / 1e6:.0f} MB")


def apptainer(build, unpacked):
    with open(f"{build}/recipes/ggufmill.def", encoding="utf-8") as file:
        sources = [line.split()[0] for line in file if line.startswith("    ggufmill-")]
    assert len(sources) == 4
    for source in sources:
        assert os.path.isdir(os.path.join(os.path.dirname(unpacked), source)), source


def main(build):
    build = os.path.abspath(build)
    with tempfile.TemporaryDirectory() as work:
        unpacked = easybuild(build, work)
        apptainer(build, unpacked)
        spack(build, unpacked, work)
        print("ok: the recipes for EasyBuild, Apptainer and Spack, without these tools", flush=True)
        conda(build, work)


main(sys.argv[1])
