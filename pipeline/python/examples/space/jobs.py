"""Jobs of the form: each is a program of its own, with its own folder and its own token, and outlives the page."""

import contextlib
import dataclasses
import importlib.util
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
import time

MOST_AT_ONCE = int(os.environ.get("GGUFMILL_SPACE_JOBS", "1"))  # further ones wait
MOST_WAITING = int(os.environ.get("GGUFMILL_SPACE_WAITING", "20"))  # beyond these, a job is refused
KEPT_SECONDS = 24 * 3600  # how long the files of a finished job stay
LOG_LINES = 200

RECIPES = ["Q8_0", "Q6_K", "Q5_K_M", "Q5_K_S", "Q4_K_M", "Q4_K_S", "Q4_0", "IQ4_XS", "IQ4_NL", "Q3_K_M", "Q3_K_S", "Q2_K", "BF16", "F16"]
PLAIN = {"BF16": "bf16", "F16": "f16"}  # written as they are, without `quantize`

CAN_CALIBRATE = all(importlib.util.find_spec(name) for name in ("torch", "transformers"))


@dataclasses.dataclass
class Wanted:
    """What a user has asked for."""

    model: str = ""  # "ORG/NAME", "ORG/NAME@REVISION", or "ORG/NAME:TYPE" of a GGUF file
    upload: str = ""  # path of a GGUF file
    recipes: tuple = ()
    size: str = ""  # "5GiB": also one file of this size
    calibrates: bool = False
    repository: str = ""  # "ORG/NAME" to publish to; empty: files to download
    is_private: bool = False
    token: str = ""

    def __post_init__(self):
        for name in ("model", "size", "repository", "token"):
            setattr(self, name, (getattr(self, name) or "").strip())
        self.model = re.sub(r"^(https://huggingface\.co/|hf://)", "", self.model).rstrip("/")
        self.repository = re.sub(r"^(https://huggingface\.co/|hf://)", "", self.repository).rstrip("/")

    def problems(self):
        """Returns what is wrong, in words for the user."""
        found = []
        part = r"[A-Za-z0-9][A-Za-z0-9._-]*"
        if bool(self.model) == bool(self.upload):
            found.append("Name a model of the hub, or upload a GGUF file: one of them.")
        if self.model and not re.fullmatch(rf"{part}/{part}(@[A-Za-z0-9._%-]+|:[A-Za-z0-9_]+)?", self.model):
            found.append(f"“{self.model}” is not a model of the hub: write ORG/NAME, for example Qwen/Qwen3-0.6B.")
        if self.upload and not is_gguf(self.upload):
            found.append("The uploaded file is not a GGUF file. For a checkpoint, name it on the hub.")
        if not self.recipes and not self.size:
            found.append("Choose at least one type, or a size.")
        if self.size and not re.fullmatch(r"[1-9][0-9]*([.][0-9]+)? ?(MB|MiB|M|GB|GiB|G)", self.size):
            found.append(f"“{self.size}” is not a size: write 5GiB or 700MB.")
        if self.calibrates and self.upload:
            found.append("Calibration needs a checkpoint of the hub, and not a GGUF file.")
        if self.calibrates and ":" in self.model:
            found.append("Calibration needs a checkpoint, and not a GGUF file: write ORG/NAME without a type.")
        if self.repository and not re.fullmatch(rf"{part}/{part}", self.repository):
            found.append(f"“{self.repository}” is not a repository: write YOUR-NAME/NAME-GGUF.")
        if self.repository and not self.token:
            found.append("Publishing needs a token of yours that may write to the repository.")
        if self.is_private and not self.repository:
            found.append("Only a repository can be private: name one, or choose public.")
        return found

    def name(self):
        if self.upload:
            return os.path.basename(self.upload).removesuffix(".gguf")
        return re.split("[@:]", self.model)[0].split("/")[1]

    def pipeline(self, source, covariance=""):
        """Returns the pipeline file. `source` is the model as ggufmill reads it."""
        kind = "gguf" if self.upload or ":" in self.model else "huggingface"
        name = self.name()
        outputs = []
        for recipe in self.recipes:
            outputs.append({"gguf": f"out/{name}-{recipe}.gguf"})
            if recipe not in PLAIN:
                outputs[-1]["quantize"] = recipe
            elif kind == "huggingface":
                outputs[-1]["outtype"] = PLAIN[recipe]
            else:
                outputs[-1]["quantize"] = recipe
        if self.size:
            size = self.size.replace(" ", "")
            outputs.append({"gguf": f"out/{name}-{size}.gguf", "quantize": {"target": {"size": size}}})
        job = {"version": 1, "source": {kind: source}, "outputs": outputs, "card": {"path": "out/README.md"}}
        if covariance:
            job["stages"] = [{"importance": {"covariance": covariance}}]
        job["report"] = {"html": "out/report.html"}
        if self.model:
            job["card"]["base_model"] = re.split("[@:]", self.model)[0]
        if self.repository:
            job["upload"] = {"to": f"hf://{self.repository}", "create": True, "private": self.is_private}
        return job


def is_gguf(path):
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"GGUF"
    except OSError:
        return False


class Job:
    """A job that waits, runs, or has ended. Its members may be read at any time."""

    def __init__(self, wanted):
        self.id = secrets.token_urlsafe(16)  # whoever knows it may see the job
        self.state = "waiting"  # "running", "done", "failed", "stopped"
        self.step = "waiting for other jobs"
        self.share = 0.0  # of the step
        self.log = []
        self.error = ""
        self.ended = None
        self.folder = tempfile.mkdtemp(prefix="ggufmill-space-")
        self._wanted = wanted
        self._process = None
        self._is_stopped = threading.Event()

    def is_over(self):
        return self.ended is not None

    def files(self):
        """Returns the paths of the files to download, once the job is done."""
        folder = os.path.join(self.folder, "out")
        if self.state != "done":
            return []
        return [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith((".gguf", ".html", ".md"))]

    def text_of(self, name):
        try:
            with open(os.path.join(self.folder, "out", name), encoding="utf-8") as file:
                return file.read()
        except OSError:
            return ""

    def repository(self):
        return self._wanted.repository

    def stop(self):
        self._is_stopped.set()
        process = self._process
        if process is not None and process.poll() is None:
            process.terminate()

    def run(self, turns):
        try:
            while not turns.acquire(timeout=0.2):
                if self._is_stopped.is_set():
                    raise Stopped
            try:
                self.state = "running"
                self._work()
                self.state = "done"
            finally:
                turns.release()
        except Stopped:
            self.state = "stopped"
        except Failed as failed:
            self.state, self.error = "failed", str(failed)
        except Exception as unexpected:  # shown to the user, who can report it
            self.state, self.error = "failed", f"{type(unexpected).__name__}: {unexpected}"
        finally:
            self._wanted.token = ""
            with contextlib.suppress(OSError):
                self._tidy()
            self.ended = time.time()

    def _tidy(self):
        """Remove what nobody asks for any more, since all jobs share the disk: all but the card, the report, and the files to download."""
        for path, folders, names in os.walk(self.folder, topdown=False):
            is_result = self.state == "done" and path == os.path.join(self.folder, "out")
            for name in names:
                if not (is_result and (not self.repository() or name.endswith((".html", ".md")))):
                    os.remove(os.path.join(path, name))
            for name in folders:
                folder = os.path.join(path, name)
                if os.path.islink(folder):
                    os.remove(folder)
                elif not os.listdir(folder):
                    os.rmdir(folder)

    def _work(self):
        wanted = self._wanted
        source, covariance = wanted.upload or f"hf://{wanted.model}", ""
        if wanted.calibrates:
            source, covariance = os.path.join(self.folder, "checkpoint"), os.path.join(self.folder, "covariance.gguf")
            name, _, revision = wanted.model.partition("@")
            fetch = "import sys, huggingface_hub; huggingface_hub.snapshot_download(sys.argv[1], revision=sys.argv[2] or None, local_dir=sys.argv[3])"
            self._start("download", [sys.executable, "-c", fetch, name, revision, source])
            self._start("calibrate", [sys.executable, "-m", "ggufmill.calibrate", source, "-o", covariance])
        path = os.path.join(self.folder, "job.yaml")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(wanted.pipeline(source, covariance), file)  # JSON is YAML
        self._start("convert", [sys.executable, "-m", "ggufmill", "run", path, "--log", "json"])

    def _start(self, step, command):
        if self._is_stopped.is_set():
            raise Stopped
        self.step, self.share = step, 0.0
        environment = {name: value for name, value in os.environ.items() if name not in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")}
        environment["HF_TOKEN_PATH"] = os.path.join(self.folder, "no-token")  # never that of the machine
        environment["GGUFMILL_CACHE"] = os.path.join(self.folder, "cache")
        if self._wanted.token:
            environment["HF_TOKEN"] = self._wanted.token
        errors = []
        self._process = subprocess.Popen(command, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL,
                                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
        if self._is_stopped.is_set():  # by stop(), before it could see the process
            self._process.terminate()
        for line in self._process.stderr:
            self._take(line.rstrip(), errors)
        code = self._process.wait()
        if self._is_stopped.is_set():
            raise Stopped
        if code != 0:
            raise Failed("\n\n".join(errors) or "\n".join(self.log[-5:]) or f"{step} ended with exit code {code}")

    def _take(self, line, errors):
        try:
            message = json.loads(line)
            level = message["level"]
        except (ValueError, KeyError, TypeError):
            message, level = {"message": line}, "info"
        if level == "progress":
            done, total = message.get("bytes_written", message.get("bytes_read", 0)), message.get("bytes_total", 0)
            self.share = min(1.0, done / total) if total else 0.0
            return
        text = str(message.get("message", line)).replace(self.folder + "/", "")
        where, help_ = (str(message.get(key, "")).replace(self.folder + "/", "") for key in ("where", "help"))
        step = re.fullmatch(r"\[(\d+/\d+)\] (.*)", text)
        if step:
            self.step, self.share = f"step {step[1]}: {step[2]}", 0.0
        if level == "error":
            errors.append(f"{where}: {text}" if where else text)
            if help_:
                errors[-1] += f"\n{help_}"
        if text:
            self.log = [*self.log[-LOG_LINES:], text]


class Stopped(Exception):
    pass


class Failed(Exception):
    pass


class Full(Exception):
    """As many jobs wait as may."""


class Jobs:
    """All jobs of the Space. Thread-safe."""

    def __init__(self):
        self._lock = threading.Lock()
        self._jobs = {}
        self._turns = threading.Semaphore(MOST_AT_ONCE)

    def start(self, wanted):
        """Returns the job; raises Full if too many wait."""
        with self._lock:
            self._forget_old()
            left = sum(not job.is_over() for job in self._jobs.values())
            if left >= MOST_AT_ONCE + MOST_WAITING:
                raise Full(f"{MOST_WAITING} jobs wait already, as many as this Space accepts. Try again when some have ended, "
                           "or duplicate the Space to have one of your own.")
            job = Job(wanted)
            self._jobs[job.id] = job
        threading.Thread(target=job.run, args=(self._turns,), daemon=True).start()
        return job

    def find(self, identifier):
        with self._lock:
            self._forget_old()
            return self._jobs.get(identifier or "")

    def _forget_old(self):
        for identifier, job in list(self._jobs.items()):
            if job.is_over() and time.time() - job.ended > KEPT_SECONDS:
                shutil.rmtree(job.folder, ignore_errors=True)
                del self._jobs[identifier]
