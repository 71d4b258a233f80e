"""check_recipes.py BUILD_FOLDER: carries out what the recipes in BUILD_FOLDER/recipes say.

rattler-build builds and tests the package of conda, EasyBuild checks and installs its module, Nix builds its package, with a
substitute for nixpkgs. For Spack and Homebrew there are only substitutes: they show that a
recipe is of the tool's language, names the archive and its checksum, and installs what it tests; not that the tool accepts it.
`brew style` does, where there is a brew. What lacks its tool is reported as skipped.
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


def unpack(build, work):
    """Return the folder of the unpacked archive."""
    (archive,) = glob.glob(f"{build}/ggufmill-*-linux-*.tar.zst")
    subprocess.run(["tar", "-C", work, "-xf", archive], check=True)
    return os.path.join(work, os.path.basename(archive).removesuffix(".tar.zst"))


def easybuild(build, work):
    """Install the module with EasyBuild, which uses Lmod, and check it as EasyBuild's maintainers do."""
    program, lmod = os.path.join(os.path.dirname(sys.executable), "eb"), "/usr/share/lmod/lmod/libexec/lmod"
    if not os.path.exists(program) or not os.path.exists(lmod):
        print("skipped: the recipe for EasyBuild, which needs it (pip install easybuild pycodestyle) and Lmod (apt-get install lmod)")
        return
    (recipe,) = glob.glob(f"{build}/recipes/*.eb")
    prefix = os.path.join(work, "easybuild")
    options = [f"--prefix={prefix}", f"--tmpdir={work}", "--modules-tool=Lmod", "--allow-use-as-root-and-accept-consequences"]
    environment = {**os.environ, "EB_PYTHON": sys.executable, "LMOD_CMD": lmod, "HOME": work}
    for arguments in (["--check-contrib"], [f"--sourcepath={build}", "--disable-rpath"]):
        run = subprocess.run([program, *options, *arguments, recipe], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert run.returncode == 0, run.stdout
    (installed,) = glob.glob(f"{prefix}/software/ggufmill/*")
    check_program(installed, work)
    print("ok: the recipe for EasyBuild, with EasyBuild: installed, and good enough to contribute")


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


def homebrew(build, work):
    """Check the formula with brew, and carry it out with a substitute, which is in Ruby as Homebrew is."""
    formula, here = f"{build}/recipes/homebrew/ggufmill.rb", os.path.dirname(os.path.abspath(__file__))
    (archive,) = glob.glob(f"{build}/ggufmill-*-linux-*.tar.zst")
    if not shutil.which("ruby"):
        print("skipped: the formula for Homebrew, which needs ruby (apt-get install ruby)")
        return
    prefix = os.path.join(work, "homebrew")
    os.makedirs(prefix)
    subprocess.run(["ruby", f"{here}/formula.rb", formula, archive, prefix], check=True)
    check_program(f"{prefix}/prefix", work)
    if shutil.which("brew"):
        subprocess.run(["brew", "style", formula], check=True)
    print("ok: the formula for Homebrew," + (" with brew style" if shutil.which("brew") else " without brew, which would check its style"))


def nix(build, work):
    """Build the package for Nix, in a store of its own."""
    if not shutil.which("nix-build"):
        print("skipped: the package for Nix, which needs nix (apt-get install nix-bin)")
        return
    here, recipe = os.path.dirname(os.path.abspath(__file__)), f"{build}/recipes/nix/package.nix"
    own = {f"NIX_{name}_DIR": os.path.join(work, "nix", name.lower()) for name in ("STORE", "STATE", "LOG", "CONF")}
    environment = {**os.environ, **own, "HOME": work, "XDG_CACHE_HOME": os.path.join(work, "nix/cache"),
                   "NIX_CONFIG": "build-users-group =\nsandbox = false"}
    subprocess.run(["nix-instantiate", "--parse", recipe], check=True, env=environment, stdout=subprocess.DEVNULL)
    made = subprocess.run(
        ["nix-build", "--no-out-link", f"{here}/stand_in.nix", "--arg", "package", recipe, "--argstr", "folder", build, "--argstr", "path", os.environ["PATH"]],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert made.returncode == 0, made.stderr
    check_program(made.stdout.strip(), work)
    subprocess.run(["chmod", "-R", "u+w", os.path.join(work, "nix")], check=True)  # a store is read-only
    print("ok: the package for Nix, built without nixpkgs")


def apptainer(build, unpacked):
    with open(f"{build}/recipes/ggufmill.def", encoding="utf-8") as file:
        sources = [line.split()[0] for line in file if line.startswith("    ggufmill-")]
    assert len(sources) == 4
    for source in sources:
        assert os.path.isdir(os.path.join(os.path.dirname(unpacked), source)), source


def main(build):
    build = os.path.abspath(build)
    with tempfile.TemporaryDirectory() as work:
        unpacked = unpack(build, work)
        apptainer(build, unpacked)
        spack(build, unpacked, work)
        print("ok: the recipes for Apptainer and Spack, without these tools", flush=True)
        easybuild(build, work)
        conda(build, work)
        homebrew(build, work)
        nix(build, work)


main(sys.argv[1])
