"""follow.py PROGRAM [NAME ...]
Runs the commands of cases.py, follows the advice of their errors, and checks that this gives valid models."""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
from cases import CASES  # noqa: E402


def run(command, folder, program):
    environment = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "NO_COLOR": "1", "GGUFMILL_CACHE": str(folder / "cache")}
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
    return done.returncode, done.stdout.decode("utf-8", "replace")


def fault(case, program):
    """Return the fault of a case; None if there is none."""
    _, make, command, advice, follow = case
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "out").mkdir()
        os.chdir(folder)
        make()
        code, said = run(command, folder, program)
        if code == 0:
            return f"does not fail: {command}\n{said}"
        if len(re.findall("error:", said)) != 1 or any((folder / "out").iterdir()):
            return f"not one error, or an output: {command}\n{said}"
        found = re.search("help: .*?" + advice, said)
        if not found:
            return f"the error does not give the advice: {command}\n{said}"
        followed = follow
        for group, text in found.groupdict().items():
            followed = followed.replace(f"@{group}@", text)
        code, said = run(followed, folder, program)
        if code != 0:
            return f"the advice does not help: {followed}\n{said}"
        models = sorted(str(path) for path in (folder / "out").glob("*.gguf"))
        if not models:
            return f"following it makes no model: {followed}\n{said}"
        for model in models:
            code, said = run(f"ggufmill verify -q '{model}'", folder, program)
            if code != 0 and "this is file" not in said:
                return f"following it makes a model that is not valid: {followed}\n{said}"
    return None


program = Path(sys.argv[1]).resolve()
wanted = sys.argv[2:]
failed = 0
for each in CASES:
    if wanted and each[0] not in wanted:
        continue
    wrong = fault(each, program)
    failed += wrong is not None
    if wrong:
        print(f"{each[0]}: {wrong}")
print(f"{len(CASES) - failed} of {len(CASES)} cases as expected")
sys.exit(1 if failed else 0)
