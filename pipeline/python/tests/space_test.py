"""The Space of examples/space, in Chromium, against the hub of tests/remote: forms, phones, wrong input, and several users."""

import importlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.normpath(os.path.join(HERE, "../../.."))
SPACE = os.path.join(SOURCE, "pipeline/python/examples/space")
BUILD = os.environ["GGUFMILL_BUILD_DIR"]
FOLDER = os.path.join(BUILD, "space-python")  # a virtual environment with the version of gradio that README.md names
TOKEN = "hf_sEcReTtOkEnOfTheTest"
PATIENCE = int(os.environ.get("GGUFMILL_SPACE_PATIENCE", "90"))  # seconds


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def find_browser():
    for name in (os.environ.get("GGUFMILL_BROWSER"), "chromium", "chromium-browser", "google-chrome"):
        if name and shutil.which(name):
            return shutil.which(name)
    return skip("there is no Chromium (apt-get install chromium)")


def find_python():
    """Returns a Python with gradio, installed from the index if it is in reach."""
    given = os.environ.get("GGUFMILL_SPACE_PYTHON")
    if given:
        return given
    with open(f"{SPACE}/README.md", encoding="utf-8") as file:
        version = re.search(r"^sdk_version: (.*)$", file.read(), re.M)[1]
    python, marker = f"{FOLDER}/bin/python", f"{FOLDER}/has-gradio-{version}"
    if os.path.exists(marker):
        return python
    try:
        subprocess.run([sys.executable, "-m", "venv", "--clear", FOLDER], check=True, capture_output=True, timeout=60)
        subprocess.run([python, "-m", "pip", "install", "-q", "--retries", "1", f"gradio=={version}"], check=True, capture_output=True, timeout=240)
    except (OSError, subprocess.SubprocessError):
        return skip(f"gradio {version} cannot be installed: the index of Python packages may be out of reach")
    with open(marker, "w", encoding="utf-8"):
        return python


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Browser:
    """Chromium, controlled by its DevTools protocol through a pair of pipes."""

    def __init__(self, program, folder):
        commands, self._to = os.pipe()
        self._from, events = os.pipe()
        flags = ("--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --disable-background-networking "
                 f"--disable-component-update --remote-debugging-pipe --user-data-dir={folder}")
        self._process = subprocess.Popen(["sh", "-c", f'exec "$0" {flags} 3<&{commands} 4>&{events}', program], pass_fds=(commands, events),
                                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(commands)
        os.close(events)
        self._number, self._text = 0, b""

    def call(self, method, session=None, **parameters):
        self._number += 1
        request = {"id": self._number, "method": method, "params": parameters, **({"sessionId": session} if session else {})}
        os.write(self._to, json.dumps(request).encode() + b"\0")
        while True:
            while b"\0" not in self._text:
                piece = os.read(self._from, 1 << 16)
                if not piece:
                    raise AssertionError("the browser has ended")
                self._text += piece
            answer, _, self._text = self._text.partition(b"\0")
            answer = json.loads(answer)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]

    def close(self):
        self._process.terminate()
        self._process.wait()
        os.close(self._to)
        os.close(self._from)


class User:
    """Somebody with a browser of their own: nothing is shared with others."""

    def __init__(self, browser, url, width=1200, height=900):
        self.browser, self.url, self.size = browser, url, (width, height)
        self.context = browser.call("Target.createBrowserContext")["browserContextId"]
        self.open()

    def open(self):
        self.target = self.browser.call("Target.createTarget", url="about:blank", browserContextId=self.context)["targetId"]
        self.session = self.browser.call("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        width, height = self.size
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.call("Network.enable")
        self.call("Page.navigate", url=self.url)
        self.wait("document.querySelector('#start') !== null")

    def leave(self):
        self.browser.call("Target.closeTarget", targetId=self.target)

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def value(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise AssertionError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait(self, expression):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if self.value(expression):
                return
            time.sleep(0.2)
        raise AssertionError(f"never: {expression}\n{self.value('document.body.innerText')}")

    def write(self, field, text):
        self.value(f"""(() => {{ const field = document.querySelector('#{field} textarea, #{field} input');
            const kind = field instanceof HTMLTextAreaElement ? HTMLTextAreaElement : HTMLInputElement;
            Object.getOwnPropertyDescriptor(kind.prototype, 'value').set.call(field, {json.dumps(text)});
            field.dispatchEvent(new Event('input', {{bubbles: true}})); field.dispatchEvent(new Event('blur', {{bubbles: true}})); }})()""")

    def choose(self, field, text):
        self.value(f"[...document.querySelectorAll('#{field} label')].find(each => each.innerText.trim() === {json.dumps(text)}).querySelector('input').click()")

    def upload(self, path):
        document = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=document, selector="#upload input[type=file]")["nodeId"]
        self.call("DOM.setFileInputFiles", nodeId=node, files=[path])
        self.wait(f"document.querySelector('#upload').innerText.includes({json.dumps(os.path.splitext(os.path.basename(path))[0])})")

    def start(self):
        time.sleep(0.5)  # what was written reaches the page's state
        self.value("document.querySelector('#start').click()")

    def text(self, field):
        return self.value(f"(document.querySelector('#{field}') || {{innerText: ''}}).innerText")

    def wait_for(self, field, part):
        """Wait until a part of the page, each of which Gradio draws when it gets to it, has a text."""
        self.wait(f"(document.querySelector('#{field}') || {{innerText: ''}}).innerText.includes({json.dumps(part)})")

    def wait_until(self, state):
        self.wait(f"(document.querySelector('#job-state') || {{dataset: {{}}}}).dataset.state === {json.dumps(state)}")


class Space(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = cls.temporary.name
        cls.root = f"{cls.folder}/server"
        os.makedirs(cls.root)
        cls.server = subprocess.Popen([sys.executable, "-B", f"{SOURCE}/tests/remote/server.py", cls.root], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        cls.hub = f"http://127.0.0.1:{cls.server.stdout.readline().split()[0]}"
        cls.model = f"{cls.folder}/small-F16.gguf"
        spec = {"metadata": [], "tensors": [{"name": name, "type": "F16", "dims": [256, 256], "dist": "normal", "seed": seed}
                                            for seed, name in enumerate(("token_embd.weight", "blk.0.ffn_up.weight", "blk.0.ffn_down.weight"), 1)]}
        with open(f"{cls.folder}/spec.json", "w", encoding="utf-8") as file:
            json.dump(spec, file)
        subprocess.run([f"{BUILD}/bin/ggufmill-synth", "model", f"{cls.folder}/spec.json", cls.model], check=True)
        for name in ("source", "one", "two"):
            os.makedirs(f"{cls.root}/hub/org/{name}/first")
            with open(f"{cls.root}/hub/org/{name}/refs.json", "w", encoding="utf-8") as file:
                json.dump({"main": "f" * 40}, file)
            os.rename(f"{cls.root}/hub/org/{name}/first", f"{cls.root}/hub/org/{name}/{'f' * 40}")
        shutil.copy(cls.model, f"{cls.root}/hub/org/source/{'f' * 40}/small-F16.gguf")
        environment = {**os.environ, "HF_ENDPOINT": cls.hub, "GRADIO_SERVER_PORT": str(free_port()), "GRADIO_ANALYTICS_ENABLED": "False", "HF_TOKEN": "hf_ofTheMachine",
                       "GGUFMILL_SPACE_JOBS": "2", "HOME": cls.folder, "TMPDIR": cls.folder}
        with open(f"{cls.folder}/app.log", "wb") as log:
            cls.app = subprocess.Popen([PYTHON, "app.py"], cwd=SPACE, env=environment, stdout=log, stderr=subprocess.STDOUT)
        cls.url = cls.address()
        cls.browser = Browser(BROWSER, f"{cls.folder}/profile")

    @classmethod
    def log(cls):
        with open(f"{cls.folder}/app.log", encoding="utf-8") as file:
            return file.read()

    @classmethod
    def address(cls):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and cls.app.poll() is None:
            found = re.search(r"http://127\.0\.0\.1:\d+", cls.log())
            if found:
                return found[0] + "/?__theme=light"
            time.sleep(0.2)
        raise AssertionError(f"the Space does not start:\n{cls.log()}")

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        for process in (cls.app, cls.server):
            process.terminate()
            process.wait()
        cls.server.stdin.close()
        cls.server.stdout.close()
        cls.temporary.cleanup()

    def published(self, name):
        with open(f"{self.root}/hub/org/{name}/refs.json", encoding="utf-8") as file:
            return sorted(os.listdir(f"{self.root}/hub/org/{name}/{json.load(file)['main']}"))

    def user(self, **options):
        user = User(self.browser, self.url, **options)
        self.addCleanup(user.leave)
        return user

    def test_wrong_input_is_explained_and_starts_nothing(self):
        user = self.user()
        user.start()
        user.wait_for("problems", "Name a model of the hub")
        user.write("model", "no such name")
        user.choose("types", "Q4_K_M")
        user.write("size", "big")
        user.write("repository", "name")
        user.choose("visibility", "private")
        user.start()
        user.wait_for("problems", "is not a model")
        said = user.text("problems")
        for part in ("“no such name”", "“big” is not a size", "is not a repository", "token"):
            self.assertIn(part, said)
        self.assertEqual(user.text("job-state"), "")

    def test_an_uploaded_file_becomes_files_to_download_on_a_phone(self):
        user = self.user(width=390, height=844)
        self.assertLessEqual(user.value("document.documentElement.scrollWidth"), 390)
        user.upload(self.model)
        user.choose("types", "Q8_0")
        user.start()
        user.wait_until("done")
        user.wait("document.querySelectorAll('#files a').length >= 4")
        user.wait_for("card", "small-F16-Q4_K_M.gguf")
        user.wait("(document.querySelector('#report iframe') || {srcdoc: ''}).srcdoc.includes('small-F16-Q8_0.gguf')")
        self.assertLessEqual(user.value("document.documentElement.scrollWidth"), 390)
        user.wait_for("start", "Start")
        self.assertNotIn("tags:", user.text("card"))
        address = user.value("[...document.querySelectorAll('#files a')].map(each => each.href).find(each => each.endsWith('Q8_0.gguf'))")
        with urllib.request.urlopen(address) as answer:
            self.assertEqual(answer.read(4), b"GGUF")

    def test_a_file_that_is_no_model_fails_clearly(self):
        path = f"{self.folder}/broken.gguf"
        with open(path, "wb") as file:
            file.write(b"GGUF" + bytes(100))
        user = self.user()
        user.upload(path)
        user.start()
        user.wait_until("failed")
        user.wait_for("outcome", "broken.gguf")
        self.assertNotIn(self.folder + "/ggufmill-space", user.text("outcome"))

    def test_a_model_of_the_hub_is_published_though_the_page_is_closed(self):
        user = self.user()
        user.write("model", "org/source:F16")
        user.write("repository", "org/new")
        user.choose("visibility", "private")
        user.write("token", TOKEN)
        user.start()
        user.wait("document.querySelector('#job-state') !== null")
        user.wait("document.querySelector('#token input').value === ''")
        user.leave()  # and comes back
        user.open()
        user.wait_until("done")
        user.wait("document.querySelector('#outcome a') !== null")
        self.assertEqual(self.published("new"), ["README.md", "source-Q4_K_M.gguf"])
        with open(f"{self.root}/hub/org/new/visibility", encoding="utf-8") as file:
            self.assertEqual(file.read(), "private")
        self.assertNotIn(TOKEN, self.log() + user.value("document.documentElement.outerHTML"))

    def test_the_connection_may_be_lost_for_a_while(self):
        user = self.user()
        user.upload(self.model)
        user.start()
        user.wait("document.querySelector('#job-state') !== null")
        user.call("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=-1, uploadThroughput=-1)
        time.sleep(2)
        user.call("Network.emulateNetworkConditions", offline=False, latency=0, downloadThroughput=-1, uploadThroughput=-1)
        user.call("Page.reload")
        user.wait("document.querySelector('#start') !== null")
        user.wait_until("done")

    def test_two_users_see_their_own_jobs(self):
        users = {"one": self.user(), "two": self.user()}
        for name, user in users.items():
            user.write("model", "org/source:F16")
            user.choose("types", "Q8_0" if name == "one" else "Q6_K")
            user.write("repository", f"org/{name}")
            user.write("token", TOKEN)
        for user in users.values():
            user.start()
        for name, user in users.items():
            user.wait_until("done")
            user.wait_for("outcome", f"org/{name}")
        self.assertIn("source-Q8_0.gguf", self.published("one"))
        self.assertNotIn("source-Q6_K.gguf", self.published("one"))
        self.assertIn("source-Q6_K.gguf", self.published("two"))

    def test_without_rights_nothing_is_written_and_the_hub_is_quoted(self):
        user = self.user()
        user.write("model", "org/source:F16")
        user.write("repository", "org/two")
        user.write("token", "wrong")
        user.start()
        user.wait_until("failed")
        user.wait_for("outcome", "token")


class SpaceJob(unittest.TestCase):
    """A job without the form."""

    def job(self, **wanted):
        sys.path.insert(0, SPACE)
        self.addCleanup(sys.path.remove, SPACE)
        self.jobs = importlib.import_module("jobs")
        job = self.jobs.Job(self.jobs.Wanted(**wanted))
        self.addCleanup(shutil.rmtree, job.folder)
        return job

    def left_by(self, job, fails=False):
        """Returns what a job leaves of its files."""
        def work():
            for name in ("cache/a", "checkpoint/b/c", "job.yaml", "out/a.gguf", "out/README.md", "out/report.html"):
                path = f"{job.folder}/{name}"
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="utf-8"):
                    pass
            if fails:
                raise self.jobs.Failed("why")

        job._work = work
        job.run(threading.Semaphore(1))
        return sorted(os.path.relpath(f"{folder}/{name}", job.folder) for folder, _, names in os.walk(job.folder) for name in names)

    def test_only_results_stay_on_the_disk(self):
        self.assertEqual(self.left_by(self.job()), ["out/README.md", "out/a.gguf", "out/report.html"])
        self.assertEqual(self.left_by(self.job(repository="org/name")), ["out/README.md", "out/report.html"])
        self.assertEqual(self.left_by(self.job(), fails=True), [])

    def test_no_more_jobs_wait_than_may(self):
        self.job()
        jobs, go_on = self.jobs.Jobs(), threading.Event()
        with unittest.mock.patch.object(self.jobs, "MOST_WAITING", 2), unittest.mock.patch.object(self.jobs.Job, "_work", lambda _: go_on.wait(60)):
            accepted = [jobs.start(self.jobs.Wanted(upload="model.gguf")) for _ in range(3)]
            with self.assertRaisesRegex(self.jobs.Full, "2 jobs wait already"):
                jobs.start(self.jobs.Wanted(upload="model.gguf"))
            accepted[2].stop()
            while not accepted[2].is_over():
                time.sleep(0.05)
            accepted.append(jobs.start(self.jobs.Wanted(upload="model.gguf")))
            go_on.set()
            while not all(job.is_over() for job in accepted):
                time.sleep(0.05)
        for job in accepted:
            shutil.rmtree(job.folder)

    def test_a_job_that_is_stopped_while_its_program_starts_stops(self):
        job = self.job(upload="model.gguf")
        start = subprocess.Popen

        def start_late(_, **options):
            job.stop()
            return start([sys.executable, "-c", "import time; time.sleep(60)"], **options)

        began = time.monotonic()
        with unittest.mock.patch.object(self.jobs.subprocess, "Popen", start_late):
            job.run(threading.Semaphore(1))
        self.assertEqual(job.state, "stopped")
        self.assertLess(time.monotonic() - began, 30)


if __name__ == "__main__":
    BROWSER, PYTHON = find_browser(), find_python()
    unittest.main()
