"""real.py: whole files on real file systems, by the number of threads. See --help."""

import argparse
import contextlib
import os
import shutil
import statistics
import subprocess
import sys
import time

parser = argparse.ArgumentParser(
    prog="./dev bench scaling --real",
    description="Quantizes a synthetic BF16 model with 1, 2, 4, ... threads on each file system, in turn, and prints medians: "
    "seconds by the clock, then seconds of processor time. `x cp` compares the fastest with `cp` of the larger file, `last/best` "
    "the time at the most threads with the best, `CPU/1` the processor time at the most threads with that of one. Making "
    "file systems, on loop devices, takes root. The environment "
    "variable LLAMA_QUANTIZE names a llama-quantize that takes part with the most threads, and whose bytes have to be the same.",
)
parser.add_argument("--weights", default="0.5G", help="sizes of models: 0.5G,4G (default: %(default)s)")
parser.add_argument("--threads", help="default: powers of 2, and the number of CPUs")
parser.add_argument("--types", default="Q4_K_M,Q8_0,F16", help="default: %(default)s")
parser.add_argument(
    "--file-systems",
    default="tmpfs,ext4,xfs,btrfs" if os.geteuid() == 0 else "here",
    help="each is made, but for `here`, which is that of --folder (default: %(default)s)",
)
parser.add_argument("--rounds", type=int, default=5, help="at most so many (default: %(default)s)")
parser.add_argument("--minutes", type=float, default=10, help="begin no round after so many (default: %(default)g)")
parser.add_argument("--folder", default="build/bench/scaling", help="for models and images (default: %(default)s)")
parser.add_argument("--program", default="build/release/bin/ggufmill", help="default: %(default)s")
options = parser.parse_args()

SYNTH = "build/release/bin/ggufmill-synth"
LLAMA = os.environ.get("LLAMA_QUANTIZE")
CPUS = len(os.sched_getaffinity(0))
MAKE = {
    "ext4": ["mkfs.ext4", "-q", "-F"],
    "xfs": ["mkfs.xfs", "-q", "-f"],
    "btrfs": ["mkfs.btrfs", "-q", "-f"],
}


def thread_counts():
    if options.threads:
        return [int(each) for each in options.threads.split(",")]
    return sorted({1 << n for n in range(CPUS.bit_length()) if 1 << n <= CPUS} | {CPUS})


def weights_of(size):
    return float(size.rstrip("G")) * 1e9


@contextlib.contextmanager
def file_system(kind, weights):
    """Yield a folder on a new file system of the kind with room for a model and two outputs of it, or None."""
    if kind == "here":
        folder = os.path.join(options.folder, kind)
        os.makedirs(folder, exist_ok=True)
        yield folder
        shutil.rmtree(folder)
        return
    if os.geteuid() != 0 or (kind in MAKE and not shutil.which(MAKE[kind][0])):
        yield None
        return
    room = int(weights * 2 * 3.2) + (1 << 30)
    folder = os.path.abspath(os.path.join(options.folder, kind))
    image = folder + ".image"
    os.makedirs(folder, exist_ok=True)
    try:
        if kind == "tmpfs":
            mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={room}", "tmpfs", folder], check=False)
        else:
            with open(image, "wb") as file:
                file.truncate(room)
            subprocess.run([*MAKE[kind], image], check=True, stdout=subprocess.DEVNULL)
            mounted = subprocess.run(["mount", "-o", "loop", image, folder], check=False)
        try:
            yield None if mounted.returncode else folder
        finally:
            if mounted.returncode == 0:
                subprocess.run(["umount", folder], check=True)
    finally:
        if os.path.exists(image):
            os.remove(image)
        os.rmdir(folder)


def timed(command):
    """Return seconds by the clock, processor seconds, and the peak of memory in MB of a program."""
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        error = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - start
    if process.returncode:
        sys.exit(f"this failed: {' '.join(command)}\n{error.decode(errors='replace')}")
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


class Contender:
    """A command that takes part in every round, what it leaves, and its measurements."""

    def __init__(self, name, command, output):
        self.name, self.command, self.output, self.runs = name, command, output, []

    def run(self):
        with contextlib.suppress(FileNotFoundError):
            os.remove(self.output)
        self.runs.append(timed(self.command))

    def median(self, what):
        return statistics.median(run[what] for run in self.runs)


def contenders_of(kind, model, folder, counts):
    """Return what quantizes to a type: ggufmill with each number of threads, and llama-quantize."""
    output = os.path.join(folder, "out.gguf")
    found = [
        Contender(str(n), [options.program, "quantize", model, output, kind, str(n), "--overwrite", "-q"], output)
        for n in counts
    ]
    if LLAMA:
        theirs = os.path.join(folder, "theirs.gguf")
        found.append(Contender(f"llama {counts[-1]}", [LLAMA, model, theirs, kind, str(counts[-1])], theirs))
    return found


def row_of(kind, contenders, copy):
    """Return a line of the table: clock and processor seconds of each contender, then the ratios."""
    ours = [each for each in contenders if each.name.isdigit()]
    best = min(ours, key=lambda each: each.median(0))
    cells = "".join(f"{each.median(0):8.2f} {each.median(1):6.2f}" for each in contenders)
    memory = max(each.median(2) for each in ours)
    return (
        f"{kind:8}{cells}{best.median(0) / copy:9.2f}{ours[-1].median(0) / best.median(0):10.2f}"
        f"{ours[-1].median(1) / ours[0].median(1):8.2f}{memory:8.0f}"
    )


def check(kind, ours, theirs):
    """Return whether the files of ggufmill and of llama-quantize have the same bytes."""
    for each in (ours, theirs):
        each.run()
    same = subprocess.run(["cmp", "-s", ours.output, theirs.output], check=False).returncode == 0
    return "same bytes" if same else f"{kind}: DIFFERENT BYTES"


def measure(folder, model, counts, end):
    """Measure every type on the file system of `folder` in rounds, and print its table."""
    kinds = options.types.split(",")
    copy = Contender("cp", ["cp", model, os.path.join(folder, "copy")], os.path.join(folder, "copy"))
    tables = {kind: contenders_of(kind, model, folder, counts) for kind in kinds}
    rounds = 0
    while rounds < options.rounds and (rounds == 0 or time.monotonic() < end):
        for contender in [copy, *(each for kind in kinds for each in tables[kind])]:
            contender.run()
        os.remove(copy.output)
        rounds += 1
    names = [each.name for each in tables[kinds[0]]]
    print(f"{'':8}{''.join(f'{name:>8}    CPU' for name in names)}{'x cp':>9}{'last/best':>10}{'CPU/1':>8}{'MB':>8}")
    for kind in kinds:
        print(row_of(kind, tables[kind], copy.median(0)), end="")
        last = tables[kind][-1]
        print(f"  {check(kind, tables[kind][0], last)}" if LLAMA else "")
    print(f"cp {copy.median(0):.2f} s, CPU {copy.median(1):.2f} s; rounds: {rounds}", flush=True)


def main():
    counts = thread_counts()
    end = time.monotonic() + options.minutes * 60
    print(f"CPUs: {CPUS}")
    for size in options.weights.split(","):
        for kind in options.file_systems.split(","):
            with file_system(kind, weights_of(size)) as folder:
                if folder is None:
                    print(f"\n{size} weights, {kind}: not measured (needs root, a loop device, and mkfs.{kind})")
                    continue
                print(f"\n{size} weights, {kind}")
                model = os.path.join(folder, "model.gguf")
                subprocess.run([SYNTH, "llama", model, "--weights", size], check=True, stdout=subprocess.DEVNULL)
                measure(folder, model, counts, end)


main()
