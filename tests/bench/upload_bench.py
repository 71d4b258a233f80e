"""upload_bench.py: uploads of one file to the servers of tests/remote, by ggufmill and by others. See --help."""

import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

parser = argparse.ArgumentParser(
    prog="./dev bench upload",
    description="Uploads a synthetic BF16 model to the hub and the bucket of tests/remote, by each program in turn, and prints medians. "
    "Server and programs share this machine: CPU seconds say what a program costs where the network is the limit. "
    "`ggufmill` to a hub uploads a file that it has written before, whose checksum it knows; the others start with the same file, and "
    "compute it. `ggufmill hf://` and `ggufmill s3://` read the model, and make the output there; `file + PROGRAM` does the same in two "
    "steps: ggufmill writes a local file, and the other program uploads it. The defaults of all programs are used, but aws computes no "
    "checksums that S3 does not need.",
)
parser.add_argument("--weights", default="2.5G", help="of the model, 2 bytes each (default: %(default)s)")
parser.add_argument("--rounds", type=int, default=3, help="the median of so many (default: %(default)s)")
parser.add_argument("--to", default="lfs,xet,s3", help="the hub by LFS, by Xet, a bucket (default: %(default)s)")
parser.add_argument("--by", help="these programs alone, with commas between them (default: all)")
parser.add_argument("--part", type=int, default=16, help="MiB of the parts that the hub asks for by LFS (default: %(default)s)")
parser.add_argument("--folder", default="build/bench/upload", help="for the model and the servers; room for three files (default: %(default)s)")
parser.add_argument("--program", default="build/release/bin/ggufmill", help="default: %(default)s")
parser.add_argument("--python", default=sys.executable, help="one that has huggingface_hub and hf_xet (default: this)")
options = parser.parse_args()

HERE = os.path.dirname(os.path.abspath(__file__))
SERVER = os.path.join(HERE, "../remote/server.py")
PROGRAM = os.path.abspath(options.program)
FOLDER = os.path.abspath(options.folder)
ROOT = os.path.join(FOLDER, "server")
COMMIT = "f" * 40
TOKEN = "hf_sEcReTtOkEnOfTheTest"
KEY, SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
HF = "import sys, huggingface_hub as hub; hub.HfApi().upload_file(path_or_fileobj=sys.argv[1], path_in_repo='model.gguf', repo_id='org/model')"
THEN = "&&"  # between two commands
TO_FILE = "outputs: [{gguf: out/model.gguf}]\nmanifest: true\n"
JOBS = {
    "file": TO_FILE,
    "hub": TO_FILE + "upload: {to: 'hf://org/model', files: ['model\\.gguf']}\n",
    "plain": "outputs: [{gguf: plain/model.gguf}]\n",
    "direct": "outputs: [{gguf: 'hf://org/model/model.gguf'}]\n",
    "s3": "outputs: [{gguf: 's3://bucket/model.gguf'}]\n",
}


def make_files():
    os.makedirs(FOLDER, exist_ok=True)
    model = os.path.join(FOLDER, f"model-{options.weights}.gguf")
    if not os.path.exists(model):
        synth = os.path.join(os.path.dirname(PROGRAM), "ggufmill-synth")
        subprocess.run([synth, "llama", model + ".new", "--weights", options.weights], check=True, stdout=subprocess.DEVNULL)
        os.replace(model + ".new", model)
    for name, text in JOBS.items():
        with open(os.path.join(FOLDER, name + ".yaml"), "w", encoding="utf-8") as file:
            file.write(f"version: 1\nsource: {{gguf: {model}}}\n{text}")
    return model


def ticks(process):
    """The CPU seconds of a running process."""
    with open(f"/proc/{process.pid}/stat", encoding="utf-8") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def server():
    """The server, with an empty repository and an empty bucket."""
    shutil.rmtree(ROOT, ignore_errors=True)
    os.makedirs(f"{ROOT}/s3/bucket")
    environment = {**os.environ, "GGUFMILL_TEST_HUB_PART": str(options.part << 20), "GGUFMILL_TEST_HUB_MOST": str(1 << 50)}
    process = subprocess.Popen([sys.executable, "-B", SERVER, ROOT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        process.url = f"http://127.0.0.1:{process.stdout.readline().split()[0]}"
        yield process
    finally:
        process.stdin.close()
        process.wait()
        shutil.rmtree(ROOT)


def clear(to):
    """Empties what the server has, and what programs have cached."""
    for name in ("lfs", "xet", "hub", "s3", "../home", "../plain"):
        shutil.rmtree(f"{ROOT}/{name}", ignore_errors=True)
    os.makedirs(f"{ROOT}/s3/bucket")
    os.makedirs(f"{ROOT}/hub/org/model/{COMMIT}")
    os.makedirs(f"{FOLDER}/home")
    if to == "xet":
        os.makedirs(f"{ROOT}/xet")
    with open(f"{ROOT}/hub/org/model/refs.json", "w", encoding="utf-8") as file:
        json.dump({"main": COMMIT}, file)
    os.sync()


def sent_bytes(to):
    """The size of what has arrived under its name."""
    if to == "s3":
        return os.path.getsize(f"{ROOT}/s3/bucket/model.gguf")
    with open(f"{ROOT}/hub/org/model/refs.json", encoding="utf-8") as file:
        path = f"{ROOT}/hub/org/model/{json.load(file)['main']}/model.gguf"
    if to == "lfs":
        return os.path.getsize(path)
    with open(path + ".xet", encoding="utf-8") as file:
        return json.load(file)["size"]


def contenders(to, model, url):
    """The command of each program."""
    run = [PROGRAM, "run", "--overwrite"]
    if to != "s3":
        client = [options.python, "-c", HF]
        return {"ggufmill": [*run, "hub.yaml"], "ggufmill hf://": [*run, "direct.yaml"], "huggingface_hub": [*client, model],
                "file + huggingface_hub": file_and([*client, "plain/model.gguf"])}
    rclone = ["--config", "/dev/null", "--s3-provider", "Other", "--s3-access-key-id", KEY, "--s3-secret-access-key", SECRET, "--s3-endpoint", url]
    all_of_them = {"ggufmill s3://": [*run, "s3.yaml"]}
    if shutil.which("rclone"):
        client = ["rclone", "copyto", "--s3-no-check-bucket", *rclone]
        all_of_them["rclone"] = [*client, model, ":s3:bucket/model.gguf"]
        all_of_them["file + rclone"] = file_and([*client, "plain/model.gguf", ":s3:bucket/model.gguf"])
    aws = os.path.join(os.path.dirname(options.python), "aws")
    if os.path.exists(aws):
        all_of_them["aws s3 cp"] = [options.python, aws, "s3", "cp", "--quiet", "--endpoint-url", url, model, "s3://bucket/model.gguf"]
    return all_of_them


def file_and(command):
    return [PROGRAM, "run", "--overwrite", "plain.yaml", THEN, *command]


def environment_of(to, url):
    home = f"{FOLDER}/home"
    hidden = ("HF_", "AWS_", "RCLONE_", "GGUFMILL_", "XDG_", "PYTHON")
    return {**{name: value for name, value in os.environ.items() if not name.startswith(hidden)},
            "HOME": home, "HF_ENDPOINT": url, "HF_TOKEN": TOKEN, "HF_HUB_DISABLE_XET": "0" if to == "xet" else "1",
            "HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "GGUFMILL_PYTHON": options.python,
            "AWS_ENDPOINT_URL_S3": url, "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_REGION": "us-east-1", "AWS_REQUEST_CHECKSUM_CALCULATION": "when_required", "no_proxy": "*"}


def commands_in(words):
    """One command, or those with THEN between them."""
    if THEN not in words:
        return [words]
    at = words.index(THEN)
    return [words[:at], words[at + 1:]]


def spend(command, environment):
    """Returns the CPU seconds of a command."""
    child = subprocess.Popen(command, cwd=FOLDER, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    said = child.stderr.read()
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    child.stderr.close()
    if child.returncode:
        sys.exit(f"upload_bench.py: {' '.join(command[:3])} failed: {said}")
    return used.ru_utime + used.ru_stime


def measure(to, command, bytes_there, process):
    """Returns the seconds of one upload by the clock, and of the CPU for the program and for the server."""
    clear(to)
    environment = environment_of(to, process.url)
    if command[-1] == "hub.yaml" and not os.path.exists(f"{FOLDER}/out/model.gguf"):
        subprocess.run([PROGRAM, "run", "file.yaml"], cwd=FOLDER, env=environment, check=True, capture_output=True)
    before, start = ticks(process), time.monotonic()
    used = sum(spend(each, environment) for each in commands_in(command))
    seconds = time.monotonic() - start
    if sent_bytes(to) != bytes_there:
        sys.exit(f"upload_bench.py: {' '.join(command[:3])}: {sent_bytes(to)} bytes have arrived, not {bytes_there}")
    return seconds, used, ticks(process) - before


def main():
    model = make_files()
    size = os.path.getsize(model)
    print(f"{size / 1e9:.2f} GB, medians of {options.rounds}\n{'to':<5}{'by':<23}{'MB/s':>7}{'s':>8}{'CPU s':>8}{'CPU s of the server':>21}", flush=True)
    for to in options.to.split(","):
        with server() as process:
            programs = contenders(to, model, process.url)
            if options.by:
                programs = {name: command for name, command in programs.items() if name in options.by.split(",")}
            times = {name: [] for name in programs}
            for number in range(options.rounds):
                names = list(programs)
                for name in names[number % len(names):] + names[:number % len(names)]:
                    times[name].append(measure(to, programs[name], size, process))
        for name, each in times.items():
            seconds, cpu, of_server = (statistics.median(column) for column in zip(*each))
            print(f"{to:<5}{name:<23}{size / seconds / 1e6:>7.0f}{seconds:>8.1f}{cpu:>8.1f}{of_server:>21.1f}", flush=True)
    shutil.rmtree(f"{FOLDER}/home")
    for name in ("out", "plain"):
        shutil.rmtree(f"{FOLDER}/{name}", ignore_errors=True)


if __name__ == "__main__":
    main()
