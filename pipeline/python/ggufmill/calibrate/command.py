"""The command line of the calibration, and its progress."""

import argparse
import importlib
import importlib.util
import os
import sys
import time

from .._error import Error, FileError, KernelError, UsageError
from .checkpoint import Checkpoint, error
from .covariance_file import MOST_HELD_OUT

DESCRIPTION = """\
Collect the covariance of the inputs of every matrix of a checkpoint, for `ggufmill quantize --covariance` and the key
`covariance` of a pipeline file. The file is also an importance matrix.

The checkpoint is a Hugging Face folder that ggufmill can convert and that your version of transformers can run. Only one
layer of it is in memory at a time. A run that was interrupted is resumed by the same command.
"""
EXAMPLES = """\
examples:
  ggufmill-calibrate models/Llama-3-8B -o Llama-3-8B.covariance.gguf
  ggufmill-calibrate models/Llama-3-8B -o de.covariance.gguf --text wiki-de.txt chats.jsonl --tokens 65536
  ggufmill-calibrate models/Llama-3-70B -o 70B.covariance.gguf --form block256 --device cuda
"""


class Parser(argparse.ArgumentParser):
    def __init__(self, program, description, examples):
        super().__init__(program, description=description, epilog=examples, formatter_class=argparse.RawDescriptionHelpFormatter)

    def error(self, message):
        raise error(UsageError, "", message, f"`{self.prog} --help` lists the options")


def add_text_options(p):
    """Add the options of the text and how the model is run on it."""
    p.add_argument("--text", metavar="FILE", nargs="+", action="extend", help="text in UTF-8, or *.jsonl with conversations for the chat template; default: a text "
                   "of several languages, code and conversations that comes with ggufmill")  # fmt: skip
    p.add_argument("--tokens", type=int, default=131072, help="tokens of the text to use (default: %(default)s)")
    p.add_argument("--chunk", type=int, help="tokens of a chunk, which the model sees alone (default: 512, or the model's context)")
    p.add_argument("--held-out", metavar="N", type=int, default=256, help="vectors of each input to keep of every eighth chunk, which is used for nothing else, and of the "
                   "text that comes with ggufmill: they decide how much of the covariance is trusted; 0: none, and all chunks are used (default: %(default)s)")  # fmt: skip
    p.add_argument("--device", default="cpu", help="device of torch: cpu, cuda, cuda:1, mps (default: %(default)s)")
    p.add_argument("--dtype", choices=("float32", "bfloat16", "float16"), help="type to compute the model in (default: float32 on the CPU, elsewhere the checkpoint's)")
    p.add_argument("--architectures", metavar="PATH", help="folder of architecture maps, or one map file, to add to the built-in ones")


def add_run_options(p, work):
    p.add_argument("--overwrite", action="store_true", help=f"replace an existing output, and discard an unfinished {work} with other options")
    p.add_argument("-q", "--quiet", action="store_true", help="print no progress")


def _parse(arguments):
    p = Parser("ggufmill-calibrate", DESCRIPTION, EXAMPLES)
    p.add_argument("model", metavar="MODEL", help="folder of the checkpoint: config.json, *.safetensors, and the tokenizer")
    p.add_argument("-o", "--output", metavar="FILE", required=True, help="covariance file to write")
    add_text_options(p)
    p.add_argument("--form", default="full", help="full: all correlations; blockN, such as block256: only those within each N columns, which is smaller "
                   "(default: %(default)s)")  # fmt: skip
    add_run_options(p, "calibration")
    return p.parse_args(arguments)


def check(options):
    """Check what does not need the model."""
    if importlib.util.find_spec("fcntl") is None:
        raise error(KernelError, "", "a calibration needs file locks of POSIX, which this system does not have", "on Windows, run it in WSL")
    for name, least in (("tokens", 1), ("chunk", 2), ("held-out", 0)):
        value = getattr(options, name.replace("-", "_"))
        if value is not None and value < least:
            raise error(UsageError, "", f"--{name} {value} is too small", f"use at least {least}")
    if options.held_out > MOST_HELD_OUT:
        raise error(UsageError, "", f"--held-out {options.held_out} is too large", f"use at most {MOST_HELD_OUT}")
    if os.path.exists(options.output) and not options.overwrite:
        raise error(FileError, options.output, "already exists", "use --overwrite to replace it, or another path with -o")
    folder = os.path.dirname(os.path.abspath(options.output))
    if not os.path.isdir(folder):
        raise error(FileError, folder, "no such folder, for the output", f"create it: `mkdir -p {folder}`")
    for path in options.text or ():
        if not os.path.isfile(path):
            raise error(FileError, path, "no such file, which --text names", "check the path")


def _block_of(form):
    """Return the number of columns of a block, 0 for all."""
    if form == "full":
        return 0
    if not (form.startswith("block") and form[5:].isascii() and form[5:].isdigit() and 2 <= int(form[5:]) < 1 << 32):
        raise error(UsageError, "", f"unknown form {form!r}", "use --form full, or --form block256 with any number of columns from 2")
    return int(form[5:])


def _import_torch():
    """Import what the extra `calibrate` installs. Returns torch and transformers."""
    try:
        modules = {name: importlib.import_module(name) for name in ("numpy", "safetensors", "torch", "transformers")}
        return modules["torch"], modules["transformers"]
    except ImportError as e:
        help = "install what a calibration needs: `pip install ggufmill[calibrate]`"
        raise error(KernelError, "", f"cannot import {e.name or 'a module'}: {e}", help) from None


def _device(torch, name):
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
        return device
    except (RuntimeError, AssertionError, ValueError) as e:
        help = "use --device cpu, or a version of torch and a driver for the device"
        raise error(KernelError, "", f"torch {torch.__version__} cannot use --device {name}: {' '.join(str(e).split())[:200]}", help) from None


def set_up(options):
    """Return the Setup of options that have been checked, and the paths of the text."""
    torch, transformers = _import_torch()
    from . import collect  # these need torch
    from .text import INCLUDED, chunks_of

    checkpoint = Checkpoint(options.model)
    device = _device(torch, options.device)
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(options.model, local_files_only=True)
    except Exception as e:  # pylint: disable=broad-except # what it raises depends on the tokenizer
        help = "the folder must have the tokenizer's files: tokenizer.json, or tokenizer.model and tokenizer_config.json"
        raise error(UsageError, options.model, f"transformers cannot read the tokenizer: {' '.join(str(e).split())[:300]}", help) from None
    text = options.text or [INCLUDED]
    return collect.set_up(checkpoint, tokenizer, options, device, text, INCLUDED, chunks_of), text


class Progress:
    """Shows how far a run is, on stderr: on a terminal in one line, else a line for each layer."""

    def __init__(self, layers, first, batches, quiet):
        self._layers, self._batches, self._quiet = layers, batches, quiet
        self._done = self._first = first * batches
        self._began, self._is_terminal = time.monotonic(), sys.stderr.isatty()

    def step(self):
        self._done += 1
        total = self._layers * self._batches
        is_layer_done = self._done % self._batches == 0
        if self._quiet or not (self._is_terminal or is_layer_done):
            return
        seconds = (time.monotonic() - self._began) / (self._done - self._first) * (total - self._done)
        layer = min((self._done - 1) // self._batches + 1, self._layers)
        text = f"layer {layer} of {self._layers}, {self._done / total:4.0%}, {_duration(seconds)} left"
        sys.stderr.write(f"\r{text}\x1b[K" if self._is_terminal else f"{text}\n")
        if self._is_terminal and self._done == total:
            sys.stderr.write("\n")
        sys.stderr.flush()


def _duration(seconds):
    seconds = int(seconds + 0.5)
    if seconds >= 3600:
        return f"{seconds // 3600} h {seconds % 3600 // 60:02} min"
    return f"{seconds // 60} min {seconds % 60:02} s" if seconds >= 60 else f"{seconds} s"


def calibrate(options):
    check(options)
    block = _block_of(options.form)
    setup, text = set_up(options)
    from .collect import collect

    collect(setup, options, os.path.abspath(options.output), block, text, Progress)


def exit_code_of(work):
    """Do the work of a program, and print its error. Returns the exit code."""
    try:
        work()
    except Error as e:
        sys.stderr.write(str(e).rstrip("\n") + "\n")
        return e.exit_code
    except OSError as e:
        sys.stderr.write(f"{e.filename or ''}: error: {e.strerror}\n".lstrip(": "))
        return 6
    except KeyboardInterrupt:
        sys.stderr.write("\ninterrupted; the same command resumes\n")
        return 130
    return 0


def main(arguments=None):
    return exit_code_of(lambda: calibrate(_parse(arguments)))


def script():
    """The program ggufmill-calibrate."""
    sys.exit(main())
