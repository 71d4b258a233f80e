"""Runs both converters of a version over the public specs: the checkpoints of the golden data (DATA/hf*) and those of the
repository (tests/golden), as far as no set of the golden data has a spec of that name."""
import hashlib
import json
import lzma
import shutil
import subprocess
import time
from pathlib import Path

import gguf_text
import pin
import versions


TOOLS = ("convert", "convert-lora")


def specs(data, pattern):
    """[(set, file)] of all specs whose case matches."""
    found, names = [], set()
    folders = [(each.name, folder) for each in sorted(data.glob("hf*")) for folder in (each / "specs", each / "refused")]
    folders += [("repository", pin.ROOT / "tests/golden" / folder) for folder in ("checkpoints", "projectors")]
    for name, folder in folders:
        for path in sorted(folder.glob("*.json")):
            if path.stem not in names and any(pattern.search(f"{tool} {name}/{path.stem}") for tool in TOOLS):
                found.append((name, path))
            names.add(path.stem)
    return found


def case_name(set_name, case, tool, run):
    return f"{tool} {set_name}/{case} {run}"


class Converter:
    def __init__(self, version, python, data, types, say):
        self.version, self.python, self.data, self.types, self.say = version, python, data, types, say
        self.work = version.cache / "convert"
        self.work.mkdir(exist_ok=True)
        log = open(self.work / "server.log", "w", encoding="utf-8")
        self.server = subprocess.Popen(
            [str(python), str(Path(__file__).with_name("converter_server.py")), str(version.source)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=log, text=True, env=versions.clean_environment(self.work))
        if not self.server.stdout.readline():
            tail = (self.work / "server.log").read_text(errors="replace").strip().splitlines()[-1:]
            raise versions.Unavailable(f"the converters of {version.name} cannot be imported: {' '.join(tail)}")

    def ask(self, request):
        self.server.stdin.write(json.dumps(request) + "\n")
        self.server.stdin.flush()
        return json.loads(self.server.stdout.readline())

    def run(self, set_name, path, table, messages):
        """Adds the results of a spec's runs to the table; keeps a description of each output."""
        spec = json.loads(path.read_text(encoding="utf-8"))
        parent = self.work / "in"
        shutil.rmtree(parent, ignore_errors=True)
        further = {"beside", "more_weights", "weights"} & set(spec)
        maker = self.data / ("hf-more" if further or not (self.data / "hf/make_checkpoint.py").exists() else "hf")
        made = subprocess.run([str(self.python), str(maker / "make_checkpoint.py"), str(path), str(parent)],
                              capture_output=True, text=True, env=versions.clean_environment(self.work))
        if made.returncode:
            self.say(f"{path.stem}: the checkpoint could not be made: {made.stderr.strip().splitlines()[-1]}")
            return
        folder = parent / spec["folder"]
        for run in spec.get("runs", []):
            out = self.work / "out"
            shutil.rmtree(out, ignore_errors=True)
            out.mkdir()
            further = [a.replace("{folder}", str(folder)).replace("{parent}", str(parent)) for a in run.get("args", [])]
            tool = run.get("tool", "convert")
            answer = self.ask({"tool": tool, "log": str(self.work / "log"), "result": str(self.work / "result.json"),
                               "arguments": ["--outfile", str(out), "--outtype", run["outtype"], *further, str(folder)],
                               "timeout": 600})
            name = case_name(set_name, path.stem, tool, run["label"])
            for case in [c for c in table if c == name or c.startswith(name + " > ")]:
                del table[case]
            if answer["exit"]:
                table[name] = (answer["exit"], "-")
                messages[name] = answer["message"].replace(str(folder), "FOLDER").replace(str(parent), "PARENT")
                continue
            for file in sorted(out.rglob("*.gguf")):
                case = f"{name} > {file.relative_to(out)}"
                table[case] = (0, hashlib.sha256(file.read_bytes()).hexdigest())
                keep_text(self.version, case, gguf_text.describe(file, self.types))

    def close(self):
        self.server.stdin.close()
        self.server.wait()


def text_file(version, case):
    return version.cache / "described" / (hashlib.sha256(case.encode()).hexdigest()[:32] + ".json.xz")


def keep_text(version, case, items):
    path = text_file(version, case)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(lzma.compress(json.dumps(items, ensure_ascii=False).encode(), preset=0))


def text_of(version, case, digest, recorded_texts):
    """The description of an output with that digest, from a run or from the golden data; None if there is none."""
    path = text_file(version, case)
    if path.exists():
        return json.loads(lzma.decompress(path.read_bytes()))
    record = recorded_texts.get(case)
    return gguf_text.from_record(record, digest) if record and record.exists() else None


def run_all(version, python, data, types, pattern, table, save, say):
    """Runs what the table does not have yet."""
    messages, begin, count = {}, time.time(), 0
    done = {case.partition(" > ")[0].split(" ")[1] for case in table if case.startswith("convert")}
    todo = [(name, path) for name, path in specs(data, pattern) if f"{name}/{path.stem}" not in done]
    if not todo:
        return messages
    converter = Converter(version, python, data, types, say)
    for name, path in todo:
        converter.run(name, path, table, messages)
        count += 1
        save()
        if count % 20 == 0:
            say(f"{version.name}: {count} of {len(todo)} checkpoints converted, {time.time() - begin:.0f} s")
    converter.close()
    save()
    return messages
