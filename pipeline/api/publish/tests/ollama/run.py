"""Compares templates of Ollama with chat templates, in Ollama's own packages. Exit code 77, which ctest takes for skipped,
if Go or the module is missing.

  run.py            configs/ollama has what Ollama renders; Ollama reads the Modelfiles of jobs, and renders in them what
                    Jinja renders, for the chat templates that Ollama knows and those in $GGUFMILL_CHAT_TEMPLATES (*.jinja)
  run.py --update   writes what Ollama renders to configs/ollama

Ollama has the licence MIT: https://github.com/ollama/ollama. Its sources are only used here.
"""
import glob
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
DATA = HERE.parents[4] / "configs" / "ollama"
LEAST_FOUND = 15  # of the templates that Ollama knows


def skip(why):
    print("skipped: " + why)
    sys.exit(77)


def run(words, **options):
    return subprocess.run([str(word) for word in words], check=True, stdout=subprocess.PIPE, text=True, **options).stdout


def built(folder):
    """Returns the program, and the folder of Ollama's sources."""
    go = shutil.which("go")
    if not go:
        skip("there is no program go")
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("main.go", "go.mod"):
        shutil.copy(HERE / name, folder)
    program = folder / "ollama-templates"
    environment = {**os.environ, "GOFLAGS": "-mod=mod -buildvcs=false", "CGO_ENABLED": "0"}
    try:
        run([go, "build", "-o", program, "."], cwd=folder, env=environment)
        sources = run([go, "list", "-m", "-f", "{{.Dir}}", "github.com/ollama/ollama"], cwd=folder, env=environment)
    except subprocess.CalledProcessError:
        skip("the module of Ollama cannot be built; its proxy may be out of reach")
    return program, pathlib.Path(sources.strip())


def plain(text):
    """Returns a text in which JSON has no spaces and sorted keys."""
    decoder, out, at = json.JSONDecoder(), [], 0
    while at < len(text):
        if text[at] == "{" or (text[at] == "[" and text[at + 1 :].lstrip()[:1] == "{"):
            try:
                value, at = decoder.raw_decode(text, at)
                out.append(json.dumps(value, sort_keys=True, separators=(",", ":")))
                continue
            except ValueError:
                pass
        out.append(text[at])
        at += 1
    return "".join(out)


def side_by_side(left, right, width=60):
    rows = ["%-*s | %s" % (width, "Jinja", "Ollama")]
    a, b = left.split("\n"), right.split("\n")
    for i in range(max(len(a), len(b))):
        one, two = (a[i] if i < len(a) else ""), (b[i] if i < len(b) else "")
        rows.append("%-*s %s %s" % (width, one[:width], "|" if one == two else "#", two[:width]))
    return "\n".join(rows)


def check_data(rendered, update):
    wrong = []
    for path in sorted(DATA.glob("*.gotmpl")):
        facts = json.loads(path.with_suffix("").with_name(path.name[: -len(".gotmpl")] + ".json").read_text())
        name = path.name[: -len(".gotmpl")]
        if facts["renders"] == rendered[name]:
            continue
        wrong.append(name)
        if update:
            facts["renders"] = rendered[name]
            (DATA / (name + ".json")).write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n")
    if wrong and not update:
        sys.exit("configs/ollama is not what Ollama renders: %s; run.py --update" % ", ".join(wrong))
    print("%d templates of Ollama, %d updated" % (len(rendered), len(wrong) if update else 0))


class Model:
    """A small model with a chat template, and the Modelfile that a job makes for it."""

    def __init__(self, folder, text):
        self.folder = folder
        self.path = folder / "model.gguf"
        items = ["tiny", "meta", "general.sampling.temp", "float32", "0.5", "meta", "tokenizer.ggml.model", "string", "llama"]
        items += ["meta", "tokenizer.ggml.tokens", "string[]", "<s>,</s>,<unk>"]
        for name, value in (("bos", 0), ("eos", 1), ("unknown", 2)):
            items += ["meta", "tokenizer.ggml.%s_token_id" % name, "uint32", value]
        items += ["meta", "tokenizer.chat_template", "string", text]
        run([os.environ["GGUFMILL_MAKE_GGUF"], self.path, *items])
        (folder / "job.yaml").write_text(
            "version: 1\nsource: {gguf: model.gguf}\noutputs: [{gguf: out/a.gguf}]\n"
            "presets: {ollama: out/Modelfile, context: 4096}\n")
        run([os.environ["GGUFMILL"], "run", "-q", "job.yaml"], cwd=folder, stderr=subprocess.DEVNULL)

    def rendered(self, conversation, tools):
        """Returns the text that Jinja renders, without the first token; None if the template refuses the conversation."""
        path = self.folder / "conversation.json"
        path.write_text(json.dumps({"messages": conversation["messages"], "tools": tools if conversation["tools"] else []}))
        shown = subprocess.run([os.environ["GGUFMILL"], "inspect", self.path, "--template", "--conversation", path, "--json"],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
        text = json.loads(shown)["templates"][0].get("text")
        return text[len("<s>"):] if text and text.startswith("<s>") else text


def chat_templates(sources):
    known = json.loads((sources / "template" / "index.json").read_text())
    for number, each in enumerate(known):
        yield "Ollama's %d, %s" % (number, each["name"]), each["template"], True
    for path in sorted(glob.glob(os.path.join(os.environ.get("GGUFMILL_CHAT_TEMPLATES", ""), "*.jinja"))):
        yield os.path.basename(path), pathlib.Path(path).read_text(encoding="utf-8"), False


def check_jobs(program, sources):
    given = json.loads((DATA / "conversations.json").read_text())
    shown = ("system and dialogue", "dialogue", "tool call and dialogue")
    found = 0
    for name, text, is_known in chat_templates(sources):
        with tempfile.TemporaryDirectory() as folder:
            model = Model(pathlib.Path(folder), text)
            read = json.loads(run([program, "modelfile", model.folder / "out" / "Modelfile", DATA / "conversations.json"]))
            assert list(read["files"]) == [str((model.folder / "out" / "a.gguf").resolve())], read["files"]
            assert read["parameters"]["temperature"] == 0.5 and read["parameters"]["num_ctx"] == 4096, read["parameters"]
            if not read["template"]:
                continue
            found += is_known
            assert read["parameters"]["stop"], read
            equal = []
            for conversation in given["conversations"]:
                ollama = read["rendered"].get(conversation["name"])
                if ollama is None or conversation["name"] not in shown:
                    continue
                jinja = model.rendered(conversation, given["tools"])
                if jinja is None:
                    continue
                if plain(jinja) != plain(ollama):
                    sys.exit("%s, %s:\n%s" % (name, conversation["name"], side_by_side(plain(jinja), plain(ollama))))
                equal.append(conversation["name"])
            print("%s: equal: %s" % (name, ", ".join(equal)))
    if found < LEAST_FOUND:
        sys.exit("only %d of the chat templates that Ollama knows got a template" % found)


def main():
    if subprocess.run(["python3", "-c", "import jinja2"], check=False, stderr=subprocess.DEVNULL).returncode != 0:
        skip("the python3 in PATH, with which ggufmill renders chat templates, has no module jinja2")
    program, sources = built(pathlib.Path(os.environ.get("GGUFMILL_OLLAMA", tempfile.gettempdir() + "/ggufmill-ollama")))
    check_data(json.loads(run([program, "render", DATA])), "--update" in sys.argv[1:])
    if "--update" not in sys.argv[1:]:
        check_jobs(program, sources)


main()
