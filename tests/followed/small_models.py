"""Makes small checkpoints, adapters, and GGUF files from nothing but the standard library. Weights are steps of 1/128, exact in every float."""
import json
import struct
from pathlib import Path

BASE = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 512, "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0, "vocab_size": 320, "tie_word_embeddings": False, "torch_dtype": "bfloat16", "bos_token_id": 1, "eos_token_id": 2}
SPECIAL = [("<unk>", 2), ("<s>", 3), ("</s>", 3)]


# ---- tensors: (dtype, shape, bytes), the shape in the order of torch
def words(values):
    """BF16 of F32 values that it represents"""
    return b"".join(struct.pack("<f", v)[2:] for v in values)


def matrix(seed, *shape):
    count = 1
    for n in shape:
        count *= n
    return "BF16", list(shape), words(((i * 37 + seed * 101) % 255 - 127) / 128 for i in range(count))


def llama(config=BASE, prefix="model."):
    h, f, kv = config["hidden_size"], config["intermediate_size"], config["num_key_value_heads"] * config["head_dim"]
    shapes = {prefix + "embed_tokens.weight": (config["vocab_size"], h), prefix + "norm.weight": (h,), "lm_head.weight": (config["vocab_size"], h)}
    for layer in range(config["num_hidden_layers"]):
        p = f"{prefix}layers.{layer}."
        for name in ("input_layernorm", "post_attention_layernorm"):
            shapes[p + name + ".weight"] = (h,)
        for name, shape in (("self_attn.q_proj", (h, h)), ("self_attn.k_proj", (kv, h)), ("self_attn.v_proj", (kv, h)), ("self_attn.o_proj", (h, h)),
                            ("mlp.gate_proj", (f, h)), ("mlp.up_proj", (f, h)), ("mlp.down_proj", (h, f))):
            shapes[p + name + ".weight"] = shape
    return {name: matrix(seed, *shape) for seed, (name, shape) in enumerate(shapes.items())}


def write_json(path, value):
    Path(path).write_text(json.dumps(value, indent=1))


def write_safetensors(path, tensors):
    header, at = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    Path(path).write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values()))


# ---- tokenizers
def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def proto(number, payload):
    if isinstance(payload, int):
        return varint(number << 3) + varint(payload)
    if isinstance(payload, float):
        return varint(number << 3 | 5) + struct.pack("<f", payload)
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def pieces(count=320):
    return SPECIAL + [(f"<0x{i:02X}>", 6) for i in range(256)] + [(f"w{i}", 1) for i in range(count - 259)]


def write_sentencepiece(folder):
    model = b"".join(proto(1, proto(1, text.encode()) + proto(2, -float(i)) + proto(3, kind)) for i, (text, kind) in enumerate(pieces()))
    model += proto(2, proto(3, 2) + proto(35, 1) + proto(40, 0) + proto(41, 1) + proto(42, 2))
    (folder / "tokenizer.model").write_bytes(model)
    write_json(folder / "tokenizer_config.json", {"tokenizer_class": "LlamaTokenizer", "add_bos_token": True, "bos_token": "<s>", "eos_token": "</s>",
                                                  "unk_token": "<unk>", "model_max_length": 512})


def write_byte_level(folder, count=320):
    """A byte-level BPE without merges, which no class names"""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [b for b in range(256) if b not in plain]
    names = [chr(b) if b in plain else chr(256 + rest.index(b)) for b in range(256)] + [f"<{i}>" for i in range(count - 256)]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    write_json(folder / "tokenizer.json", {"version": "1.0", "added_tokens": [], "normalizer": None, "pre_tokenizer": level, "decoder": level,
                                           "model": {"type": "BPE", "vocab": {t: i for i, t in enumerate(names)}, "merges": []}})
    write_json(folder / "tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 512})


# ---- folders
def checkpoint(path, config=BASE, tensors=None, tokenizer=write_sentencepiece, files=None):
    """`files`: {name: tensors} in place of model.safetensors"""
    folder = Path(path)
    folder.mkdir(parents=True)
    write_json(folder / "config.json", config)
    tokenizer(folder)
    for name, each in (files or {"model.safetensors": tensors or llama(config)}).items():
        write_safetensors(folder / name, each)
    return folder


def adapter(path):
    folder = Path(path)
    folder.mkdir()
    write_json(folder / "adapter_config.json", {"peft_type": "LORA", "r": 4, "lora_alpha": 8, "target_modules": ["q_proj"]})
    parts = {}
    for layer in range(2):
        for half, shape in (("A", (4, 64)), ("B", (64, 4))):
            parts[f"base_model.model.model.layers.{layer}.self_attn.q_proj.lora_{half}.weight"] = matrix(layer, *shape)
    write_safetensors(folder / "adapter_model.safetensors", parts)
    return folder


# ---- GGUF
def text(value):
    return struct.pack("<Q", len(value)) + value.encode()


def gguf(path, tensors, keys=(), architecture="test"):
    """`tensors`: {name: (shape in the order of torch, F32 bytes)}; `keys`: [(name, type number, bytes)]"""
    keys = [("general.architecture", 8, text(architecture)), *keys]
    head = struct.pack("<IIQQ", 0x46554747, 3, len(tensors), len(keys))
    for name, kind, value in keys:
        head += text(name) + struct.pack("<I", kind) + value
    at, data = 0, b""
    for name, (shape, values) in tensors.items():
        head += text(name) + struct.pack("<I", len(shape)) + b"".join(struct.pack("<Q", n) for n in reversed(shape)) + struct.pack("<IQ", 0, at)
        data += values + bytes(-len(values) % 32)
        at = len(data)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_bytes(head + bytes(-len(head) % 32) + data)


def floats(seed, *shape):
    count = 1
    for n in shape:
        count *= n
    return list(shape), b"".join(struct.pack("<f", ((i * 37 + seed * 101) % 255 - 127) / 128) for i in range(count))


def layers(width=256, rows=64, count=2):
    tensors = {}
    for layer in range(count):
        for seed, name in enumerate(("attn_q", "attn_v", "ffn_up")):
            tensors[f"blk.{layer}.{name}.weight"] = floats(seed + layer, rows, width)
    return tensors


def importance(path, tensors):
    entries = {}
    for name, (shape, _) in tensors.items():
        entries[name + ".in_sum2"] = [1, shape[1]], struct.pack(f"<{shape[1]}f", *(1 + i % 7 for i in range(shape[1])))
        entries[name + ".counts"] = [1, 1], struct.pack("<f", 16)
    gguf(path, entries, [("general.type", 8, text("imatrix")), ("imatrix.datasets", 9, struct.pack("<IQ", 8, 1) + text("a.txt")),
                         ("imatrix.chunk_count", 4, struct.pack("<I", 4)), ("imatrix.chunk_size", 4, struct.pack("<I", 512))], "imatrix")
