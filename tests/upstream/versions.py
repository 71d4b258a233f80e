"""Sources of versions of llama.cpp, their llama-quantize, and the Python environment of the converters. All of them lie in
the cache folder, outside the repository's tracked files."""
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pin

# Only what llama-quantize needs. The bytes do not depend on the optimization level, so C++, which decides about types, is
# compiled without: it takes most of the time. The kernels are C. No instruction set that would fuse operations.
CMAKE = """-G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=ON -DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF -DGGML_NATIVE=OFF
-DGGML_CPU=OFF -DGGML_OPENMP=OFF -DGGML_CCACHE=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF
-DLLAMA_BUILD_SERVER=OFF -DLLAMA_BUILD_APP=OFF -DLLAMA_ALL_WARNINGS=OFF""".split() + [
    "-DCMAKE_CXX_FLAGS_RELEASE=-O0 -DNDEBUG", "-DCMAKE_C_FLAGS_RELEASE=-O2 -DNDEBUG"]
PRECOMPILED = Path(__file__).with_name("precompiled.cmake")


class Unavailable(Exception):
    """Raised if something cannot be run here; the message names it and the reason."""


class Version:
    """name: as in the tables; source: folder with convert_hf_to_gguf.py, None if only golden data of the version is there, in
    the folder `recorded`; cache: folder for what is made of it."""

    def __init__(self, name, source, cache, recorded=None):
        self.name, self.source, self.cache, self.recorded = name, source and Path(source), Path(cache), recorded
        self.cache.mkdir(parents=True, exist_ok=True)
        self.build = self.cache / "build"

    def program(self):
        return self.build / "bin/llama-quantize"

    def library(self):
        return self.build / "bin/libggml-base.so"


def build_number(text):
    """"b11434" of a package's version 11434.0.0 or of a tag; None of anything else."""
    number = text.lstrip("b").split(".")[0]
    return f"b{number}" if number.isdigit() else None


def find(argument, cache, say):
    """The version that the user names: a folder, an archive of a source distribution, or PACKAGE==VERSION."""
    kind, _, folder = argument.partition(":")
    if kind == "recorded":
        if not sorted(Path(folder).glob("*/*.tsv")):
            raise SystemExit(f"follow: {argument}: no golden data (golden/*.tsv, hf*/*.tsv) in {folder}")
        name = "recorded-" + Path(folder).resolve().name
        return Version(name, None, cache / name, Path(folder))
    path = Path(argument)
    if path.is_dir():
        for source in (path, path / "llama.cpp"):
            if (source / "convert_hf_to_gguf.py").is_file():
                return named_folder(source.resolve(), cache)
        raise SystemExit(f"follow: {argument}: no convert_hf_to_gguf.py in it or in its folder llama.cpp: give the source "
                         "of llama.cpp")
    if path.is_file():
        return unpack(path, cache)
    if "==" not in argument:
        raise SystemExit(f"follow: {argument}: neither a folder, nor an archive, nor PACKAGE==VERSION")
    package, _, version = argument.partition("==")
    name = build_number(version) or argument.replace("==", "-")
    if (cache / name / "source").exists():
        return Version(name, cache / name / "source", cache / name)
    found = sorted((cache / "download").glob(f"{package.replace('-', '_')}-{version}.tar.gz"))
    if not found:
        say(f"downloading {argument}")
        command = ["pip", "download", "--quiet", "--no-deps", "--no-binary", package, "-d", str(cache / "download"), argument]
        if subprocess.run(command).returncode:
            raise SystemExit(f"follow: pip has no source distribution of {argument}: `pip index versions {package}` lists "
                             "what there is")
        found = sorted((cache / "download").glob(f"{package.replace('-', '_')}-{version}.tar.gz"))
    return unpack(found[0], cache)


def named_folder(source, cache):
    """A checkout is named after its tag or commit, an unpacked package after its version."""
    if source.parent.parent == cache.resolve():
        return Version(source.parent.name, source, source.parent)
    name = next((build_number(p.rpartition("-")[2]) for p in reversed(source.parts) if "-" in p and
                 build_number(p.rpartition("-")[2])), None)
    if (source / ".git").exists():
        name = subprocess.run(["git", "-C", str(source), "describe", "--tags", "--always"], capture_output=True,
                              text=True).stdout.strip() or name
    name = name or source.name
    return Version(name, source, cache / name)


def unpack(archive, cache):
    name = build_number(archive.name.rpartition("-")[2]) or archive.stem
    source = cache / name / "source"
    if not source.exists():
        scratch = cache / name / "unpacked"
        shutil.rmtree(scratch, ignore_errors=True)
        with tarfile.open(archive) as tar:
            tar.extractall(scratch, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
        converter = next(iter(sorted(scratch.rglob("convert_hf_to_gguf.py"), key=lambda p: len(p.parts))), None)
        if not converter:
            raise SystemExit(f"follow: {archive}: no convert_hf_to_gguf.py in it")
        converter.parent.rename(source)
        shutil.rmtree(scratch)
    return Version(name, source, cache / name)


def build_library(version, jobs):
    """Builds libggml-base, which has the kernels, unless it is there; raises Unavailable with the log's name."""
    if not version.library().exists():
        build(version, jobs, "ggml-base")


def build_program(version, jobs):
    """Builds llama-quantize unless it is there; raises Unavailable with the log's name."""
    if not version.program().exists():
        build(version, jobs, "llama-quantize")


def build(version, jobs, target):
    configure = ["cmake", "-S", str(version.source), "-B", str(version.build), *CMAKE]
    if (version.source / "src/models/models.h").exists():
        configure.append(f"-DCMAKE_PROJECT_TOP_LEVEL_INCLUDES={PRECOMPILED}")
    log = version.cache / "build.log"
    with open(log, "w", encoding="utf-8") as out:
        for command in (configure, ["cmake", "--build", str(version.build), "-j", str(jobs), "--target", target]):
            try:
                status = subprocess.run(command, stdout=out, stderr=out).returncode
            except OSError as error:
                raise Unavailable(f"{command[0]}: {error.strerror}")
            if status:
                raise Unavailable(f"{target} of {version.name} could not be built, see {log}")


def environment(path, cache, make, say):
    """The Python of an environment with the real libraries in their pinned versions; raises Unavailable."""
    folder = Path(path) if path else cache / "venv"
    python = folder / "bin/python3"
    wanted = pin.read()["libraries"]
    if not python.exists():
        if not make:
            raise Unavailable(f"no Python environment {folder}; --libraries makes it (7 GB), --venv names another")
        say(f"installing the Python libraries in {folder}: 7 GB, minutes")
        subprocess.run(["python3", "-m", "venv", str(folder)], check=True)
        subprocess.run([str(folder / "bin/pip"), "install", "--quiet", "accelerate",
                        *(f"{name}=={version}" for name, version in wanted.items())], check=True)
    code = "import importlib.metadata as m, sys\nfor n in sys.argv[1:]: print(n, m.version(n))"
    found = subprocess.run([str(python), "-c", code, *wanted], capture_output=True, text=True)
    if found.returncode:
        raise Unavailable(f"{folder}: {found.stderr.strip().splitlines()[-1]}")
    have = dict(line.split() for line in found.stdout.splitlines())
    other = [f"{n} {have[n]} instead of {v}" for n, v in wanted.items() if have[n].split("+")[0] != v]
    if other:
        say("note: the environment has " + ", ".join(other) + "; both versions run with it, but the recorded table does not hold")
    return python


def clean_environment(work):
    return {"PATH": os.environ["PATH"], "HOME": str(work), "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "0",
            "PYTHONDONTWRITEBYTECODE": "1", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "OMP_NUM_THREADS": "1",
            "TOKENIZERS_PARALLELISM": "false", "TRANSFORMERS_VERBOSITY": "error", "CUDA_VISIBLE_DEVICES": ""}
