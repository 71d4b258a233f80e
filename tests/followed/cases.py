"""Inputs with one fault each, the commands that fail on them, and what a user does who follows the advice of the error.

Each case is (name, input, command, advice, follow):
  input    makes the files in the current folder
  command  must fail with one error and leave out/ empty
  advice   a regular expression that the error's `help:` must match
  follow   a command for bash that does what the advice says; @NAME@ is replaced by the group NAME of the advice. It must
           succeed, and all models in out/ must be valid
"""
from small_models import *

PLAIN = "ggufmill convert base -q --outtype bf16 --outfile out/base.gguf"


def changed(tensors, rename=lambda name: name, drop=()):
    return {rename(name): tensor for name, tensor in tensors.items() if name not in drop}


def halves():
    tensors = list(llama().items())
    return dict(tensors[:10]), dict(tensors[10:])


def index(path, tensors, file):
    write_json(Path(path) / "model.safetensors.index.json", {"weight_map": {name: file for name in tensors}})


def nan():
    tensors = llama()
    kind, shape, data = tensors["model.layers.1.mlp.up_proj.weight"]
    tensors["model.layers.1.mlp.up_proj.weight"] = kind, shape, data[:-2] + b"\xc0\x7f"
    return tensors


def two_models(first, second):
    return {**changed(llama(), lambda n: first + n), **changed(llama(), lambda n: second + n)}


def extra(name):
    return {**llama(), name: matrix(1, 2, 64)}


def modules(path, kind):
    checkpoint(path, {**BASE, "architectures": ["Gemma3TextModel"]})
    write_json(Path(path) / "modules.json", [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
                                             {"idx": 1, "name": "1", "path": "2_" + kind, "type": "sentence_transformers.models." + kind}])


MAP = (r"run `(?P<run>ggufmill architectures new \S+ --like llama -o mine\.yaml)`, add `(?P<rule>names: [^`]+)` to it, and use the file with "
       r"(?P<option>--architectures mine\.yaml)")
USE_MAP = "@run@ && echo \"@rule@\" >> mine.yaml && ggufmill convert a -q --outtype bf16 @option@ --outfile out/a.gguf"
AS_BASE = " && " + PLAIN + " && ggufmill compare out/a.gguf out/base.gguf | grep -q 'all values are equal'"
CONVERT = "ggufmill convert a -q --outtype bf16 --outfile out/a.gguf"

CASES = [
    # ---- values
    ("NaN, zeros in its place", lambda: checkpoint("a", tensors=nan()), CONVERT, r"`(?P<key>nonfinite: zero)` in a pipeline file",
     CONVERT + " --emit-pipeline > job.yaml && echo '@key@' >> job.yaml && ggufmill run -q job.yaml"),
    ("a number too large for Q6_K", lambda: gguf("a.gguf", {"a.weight": ([2, 256], struct.pack("<512f", *[1e20] * 512))}),
     "ggufmill quantize -q --pure a.gguf out/a.gguf Q6_K", r"greater range for this tensor, such as (?P<type>\w+)",
     "ggufmill quantize -q --pure a.gguf out/a.gguf @type@"),
    # ---- holes
    ("a matrix is missing", lambda: checkpoint("a", tensors=changed(llama(), drop=["model.layers.1.mlp.up_proj.weight"])), CONVERT,
     r"to continue without it, use (?P<option>--allow-missing)", CONVERT + " @option@"),
    ("too few layers in config.json", lambda: checkpoint("a", {**BASE, "num_hidden_layers": 1}, llama()), CONVERT, r"correct the number in (?P<file>config\.json)",
     "sed -i 's/\"num_hidden_layers\": 1/\"num_hidden_layers\": 2/' a/@file@ && " + CONVERT),
    ("a number in quotes in config.json", lambda: (checkpoint("base"), checkpoint("a", {**BASE, "hidden_size": "64"}, llama())), CONVERT,
     r'write "(?P<key>\w+)": (?P<value>\d+), without quotes', "sed -i 's/\"@key@\": \"@value@\"/\"@key@\": @value@/' a/config.json && " + CONVERT + AS_BASE),
    ("an integer with a fraction in config.json", lambda: (checkpoint("base"), checkpoint("a", {**BASE, "num_hidden_layers": 2.0}, llama())), CONVERT,
     r'write "(?P<key>\w+)": (?P<value>\d+)', "sed -i 's/\"@key@\": [0-9.]*/\"@key@\": @value@/' a/config.json && " + CONVERT + AS_BASE),
    # ---- files
    ("an index without tensors", lambda: (checkpoint("a"), index("a", [], "")), CONVERT, r"remove it if the weights are in one file",
     "rm a/model.safetensors.index.json && " + CONVERT),
    ("an index of files that are gone", lambda: (checkpoint("a"), index("a", llama(), "model-00001-of-00001.safetensors")), CONVERT,
     r"the index is out of date: remove (?P<file>[^;\s]+)", "rm a/@file@ && " + CONVERT),
    ("a tensor in two files", lambda: checkpoint("a", files={"model.safetensors": llama(), "model-00001-of-00001.safetensors": halves()[0]}), CONVERT,
     r"remove the file that is out of date", "rm a/model-00001-of-00001.safetensors && " + CONVERT),
    ("a file of another name", lambda: checkpoint("a", files={"model.safetensors": halves()[0], "rest.safetensors": halves()[1]}), CONVERT,
     r"rename it so that its name begins with '(?P<name>model)'", "mv a/rest.safetensors a/@name@-2.safetensors && " + CONVERT),
    ("weights one folder deeper", lambda: (checkpoint("a/checkpoint-5"), [write_json("a/config.json", BASE), write_sentencepiece(Path("a"))]), CONVERT,
     r"give the folder of the weights: (?P<folder>\S+)", "ggufmill convert @folder@ -q --outfile out/a.gguf"),
    # ---- only GGUF files
    ("convert of a folder with GGUF files", lambda: (gguf("a/X-F32.gguf", layers()), gguf("a/Y-F32.gguf", layers())), CONVERT,
     r"to quantize it: `(?P<run>ggufmill quantize \S+) OUT\.gguf (?P<type>\w+)`", "@run@ -q out/a.gguf @type@"),
    ("quantize of a folder with two models", lambda: (gguf("a/X-F32.gguf", layers()), gguf("a/Y-F32.gguf", layers())),
     "ggufmill quantize -q a out/ Q8_0", r"give one of them, such as (?P<file>\S+)", "ggufmill quantize -q @file@ out/ Q8_0"),
    ("a folder with two models in a matrix", lambda: (gguf("a/X-F32.gguf", layers()), checkpoint("b"), gguf("a/Y-F32.gguf", layers()), Path("job.yaml").write_text(
        "version: 1\nmatrix: {sources: [a]}\noutputs: [{gguf: 'out/{name}.gguf', quantize: Q8_0}]\n")),
     "ggufmill run -q job.yaml", r"give the file: .*, (?P<file>\S+) in the sources of a matrix", "sed -i 's|: .a.}|: [@file@]}|' job.yaml && ggufmill run -q job.yaml"),
    ("GGUF files as the base of an adapter", lambda: (adapter("a"), checkpoint("base"), gguf("g/X.gguf", layers())),
     "ggufmill convert-lora a -q --base g --outfile out/a.gguf", r"(?P<option>--base) FOLDER", "ggufmill convert-lora a -q @option@ base --outfile out/a.gguf"),
    ("an adapter as a model", lambda: (adapter("a"), checkpoint("base")), CONVERT, r"`(?P<run>ggufmill convert-lora \S+)` converts adapters",
     "@run@ -q --base base --outfile out/a.gguf"),
    ("an adapter without a base", lambda: (adapter("a"), checkpoint("base")), "ggufmill convert-lora a -q --outfile out/a.gguf", r"add (?P<option>--base) FOLDER",
     "ggufmill convert-lora a -q @option@ base --outfile out/a.gguf"),
    # ---- names
    ("an unknown word before all names", lambda: (checkpoint("base"), checkpoint("a", tensors=changed(llama(), lambda n: "actor.policy." + n))), CONVERT, MAP,
     USE_MAP + AS_BASE),
    ("another outer name", lambda: (checkpoint("base"), checkpoint("a", tensors=changed(llama(), lambda n: n.replace("model.", "transformer.", 1)))), CONVERT, MAP,
     USE_MAP + AS_BASE),
    ("a word before some names", lambda: (checkpoint("base"), checkpoint("a", tensors=changed(llama(), lambda n: ("module." if ".1." in n else "") + n))), CONVERT, MAP,
     USE_MAP + AS_BASE),
    ("an unknown word inside names", lambda: (checkpoint("base"), checkpoint("a", tensors=changed(llama(), lambda n: n.replace("mlp.", "mlp.wrapped.")))), CONVERT, MAP,
     USE_MAP + AS_BASE),
    ("a second model beside the first", lambda: (checkpoint("base"), checkpoint("a", tensors=two_models("", "ema."))), CONVERT, MAP, USE_MAP + AS_BASE),
    ("a second model inside names", lambda: (checkpoint("base"), checkpoint("a", tensors={**llama(), **{n.replace("attn.", "attn.shadow."): t for n, t in llama().items()
                                                                                                        if "attn." in n}})), CONVERT, MAP, USE_MAP + AS_BASE),
    ("a tensor with and without a word", lambda: (checkpoint("base"), checkpoint("a", tensors={**changed(llama(), lambda n: "policy." + n), "lm_head.weight": matrix(99, 320, 64)})),
     CONVERT, MAP, USE_MAP + AS_BASE),
    ("two models", lambda: (checkpoint("base"), checkpoint("a", tensors=two_models("student.", "teacher."))), CONVERT, MAP, USE_MAP + AS_BASE),
    ("tensors of an optimizer", lambda: (checkpoint("base"), checkpoint("a", tensors={**extra("optimizer.a.weight"), "optimizer.b.weight": matrix(2, 2, 64)})), CONVERT,
     MAP, USE_MAP + AS_BASE),
    ("a head for classes", lambda: (checkpoint("base"), checkpoint("a", tensors=extra("score.weight"))), CONVERT,
     r"run `(?P<run>[^`]+)`, .*drop it with `names: \[\{drop: \.\.\.\}\]`, and use the file with (?P<option>--architectures mine\.yaml)",
     "@run@ && echo \"names: [{drop: '^score'}]\" >> mine.yaml && " + CONVERT + " @option@" + AS_BASE),
    # ---- tokenizers
    ("an unknown pre-tokenizer", lambda: checkpoint("a", {**BASE, "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2"}, tokenizer=write_byte_level),
     CONVERT + " --allow-missing", r"set it in the pipeline file: `pre: NAME` next to the folder, with a name that llama\.cpp knows, such as .*(?P<name>gpt-2)",
     CONVERT + " --allow-missing --emit-pipeline > job.yaml && sed -i \"s/^\\( *\\)path: 'a'/&\\n\\1pre: @name@/\" job.yaml && ggufmill run -q job.yaml"),
    ("no tokenizer", lambda: (checkpoint("base"), checkpoint("a", tokenizer=lambda folder: None)), CONVERT, r"copy the checkpoint's tokenizer files into the folder",
     "cp base/tokenizer* a/ && " + CONVERT),
    # ---- sentence-transformers
    ("Dense modules that are not there", lambda: checkpoint("a"), CONVERT + " --sentence-transformers-dense-modules", r"omit (?P<option>--sentence\S+)",
     CONVERT),
    # ---- metadata
    ("a word for a list", lambda: gguf("a.gguf", layers(), [("general.tags", 9, struct.pack("<IQ", 8, 1) + text("x"))]),
     "ggufmill edit a.gguf --set general.tags=chat -o out/a.gguf", r"write (?P<value>\[chat\])", "ggufmill edit a.gguf --set 'general.tags=@value@' -o out/a.gguf"),
    ("a list for a list of lists", lambda: gguf("a.gguf", layers(), [("t.n", 9, struct.pack("<IQIQI", 9, 1, 4, 1, 7))]),
     "ggufmill edit a.gguf --set 't.n=[1, 2]' -o out/a.gguf", r"write lists in the list: (?P<value>\S+)", "ggufmill edit a.gguf --set 't.n=@value@' -o out/a.gguf"),
    ("a text for a number", lambda: gguf("a.gguf", layers(), [("t.n", 4, struct.pack("<I", 7))]), "ggufmill edit a.gguf --set t.n=8k -o out/a.gguf",
     r"write (?P<key>t\.n):TYPE as the key", "ggufmill edit a.gguf --set @key@:str=8k -o out/a.gguf"),
    ("an alignment that is none", lambda: gguf("a.gguf", layers()), "ggufmill edit a.gguf --set general.alignment=7 -o out/a.gguf",
     r"a power of two of type uint32, such as (?P<value>\d+)", "ggufmill edit a.gguf --set general.alignment=@value@ -o out/a.gguf"),
    ("an integer beyond 32 bits", lambda: gguf("a.gguf", layers()), "ggufmill quantize -q --override-kv t.n=int:9999999999 a.gguf out/a.gguf Q8_0",
     r"use KEY=(?P<type>uint64):VALUE", "ggufmill quantize -q --override-kv t.n=@type@:9999999999 a.gguf out/a.gguf Q8_0"),
    # ---- split and merge
    ("a size without a number", lambda: gguf("a.gguf", layers()), "ggufmill split -q --split-max-size G a.gguf out/a",
     r"write a number and a unit: (?P<size>\w+)", "ggufmill split -q --split-max-size @size@ a.gguf out/a"),
    ("--delete-splits of links", lambda: (gguf("b.gguf", layers()), Path("hub").mkdir()),
     "ggufmill split -q --split-max-tensors 3 b.gguf b && ln -s ../b-00001-of-00002.gguf ../b-00002-of-00002.gguf hub && "
     "ggufmill merge -q --delete-splits hub/b-00001-of-00002.gguf out/a.gguf", r"omit (?P<option>--delete-splits)", "ggufmill merge -q hub/b-00001-of-00002.gguf out/a.gguf"),
    ("both limits", lambda: gguf("a.gguf", layers()), "ggufmill split -q --split-max-size 1M --split-max-tensors 2 a.gguf out/a", r"omit one of them",
     "ggufmill split -q --split-max-tensors 2 a.gguf out/a"),
    # ---- importance
    ("a type that needs importance", lambda: (gguf("a.gguf", layers()), importance("imatrix.gguf", layers())), "ggufmill quantize -q --pure a.gguf out/a.gguf IQ2_XS",
     r"add one: (?P<option>--imatrix imatrix\.gguf)", "ggufmill quantize -q --pure @option@ a.gguf out/a.gguf IQ2_XS"),
    ("a layer without importance, another type", lambda: (gguf("a.gguf", layers()), importance("imatrix.gguf", layers(count=1))),
     "ggufmill quantize -q --pure --imatrix imatrix.gguf a.gguf out/a.gguf IQ2_XS", r"with (?P<option>--tensor-type) PATTERN=TYPE",
     r"ggufmill quantize -q --pure --imatrix imatrix.gguf @option@ 'blk\.1\.=Q4_K' a.gguf out/a.gguf IQ2_XS"),
    ("a layer without importance, that of its neighbours", lambda: (gguf("a.gguf", layers()), importance("imatrix.gguf", layers(count=1))),
     "ggufmill quantize -q --pure --imatrix imatrix.gguf a.gguf out/a.gguf IQ2_XS",
     r"add `(?P<key>missing: neighbours)` to `importance` in the pipeline file that --emit-pipeline prints",
     "ggufmill quantize --pure --imatrix imatrix.gguf a.gguf out/a.gguf IQ2_XS --emit-pipeline | sed 's/^\\( *\\)any_model: true/&\\n\\1@key@/' > job.yaml && "
     "ggufmill run -q job.yaml"),
    ("importance of another width", lambda: (gguf("a.gguf", layers()), importance("imatrix.gguf", {**layers(), "blk.0.attn_q.weight": floats(1, 64, 512)})),
     "ggufmill quantize -q --imatrix imatrix.gguf a.gguf out/a.gguf Q4_K_M", r"(?P<option>--exclude-weights) (?P<name>blk\.0\.attn_q\.weight)",
     "ggufmill quantize -q --imatrix imatrix.gguf @option@ @name@ a.gguf out/a.gguf Q4_K_M"),
    # ---- types
    ("a type with a typo", lambda: gguf("a.gguf", layers()), "ggufmill quantize -q --tensor-type attn_v=q6k a.gguf out/a.gguf Q4_0", r"did you mean '(?P<type>\w+)'",
     "ggufmill quantize -q --tensor-type attn_v=@type@ a.gguf out/a.gguf Q4_0"),
    ("a model that is quantized", lambda: gguf("b.gguf", layers()), "ggufmill quantize -q b.gguf a.gguf Q8_0 && ggufmill quantize -q a.gguf out/a.gguf Q4_0",
     r"(?P<option>--allow-requantize)", "ggufmill quantize -q @option@ a.gguf out/a.gguf Q4_0"),
    ("rows that fit no candidate", lambda: (gguf("a.gguf", {**layers(), "blk.0.x.weight": floats(1, 64, 48), "blk.1.x.weight": floats(2, 64, 48)}), Path("job.yaml").write_text(
        "version: 1\nsource: {gguf: a.gguf}\noutputs:\n- gguf: out/a.gguf\n  quantize:\n    target: {bits: 6}\n")),
     "ggufmill run -q job.yaml", r"set one for all of them: (?P<key>tensors: .+\])", "echo \"    @key@\" >> job.yaml && ggufmill run -q job.yaml"),
    # ---- command lines
    ("an option where a value is expected", lambda: gguf("a.gguf", layers()), "ggufmill quantize -q a.gguf out/a.gguf Q8_0 --report --pure",
     r"if it is the value: (?P<option>\S+)", "ggufmill quantize -q a.gguf out/a.gguf Q8_0 @option@.json"),
    ("an option where a type is expected", lambda: checkpoint("a"), "ggufmill convert a -q --outtype --outfile out/a.gguf", r"give the value before it",
     "ggufmill convert a -q --outtype f16 --outfile out/a.gguf"),
    ("an option with a typo", lambda: gguf("a.gguf", layers()), "ggufmill quantize -q --pur a.gguf out/a.gguf Q8_0", r"see `--help`",
     "ggufmill quantize --help > /dev/null && ggufmill quantize -q --pure a.gguf out/a.gguf Q8_0"),
    ("a file called -", lambda: gguf("a.gguf", layers()), "ggufmill quantize -q a.gguf - Q8_0", r"for one that is called '-': (?P<name>\./-)",
     "ggufmill quantize -q a.gguf @name@ Q8_0 && mv @name@ out/a.gguf"),
]
