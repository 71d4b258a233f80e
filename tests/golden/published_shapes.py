#!/usr/bin/env python3
"""Plans checkpoints with the shapes of published models, without their weights.

usage: published_shapes.py GGUFMILL [FOLDER]
Writes config.json, a tokenizer of the larger golden data, and safetensors files whose data is a hole, in FOLDER (default:
a temporary folder), and plans their conversion: as it is, and with Q4_K_M. Prints time, memory, and sizes. Exit status: 0
if each is planned with the expected number of weights, in at most MOST_MEMORY; 77 without the larger golden data.

The numbers of layers and experts and the widths are those by which llama.cpp tells the published models
(src/models/*.cpp); what it does not name was chosen such that the number of weights is that in the model's name."""
import json
import lzma
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST_MEMORY = 512 << 20
SHARD = 5_000_000_000
BYTES = {"BF16": 2, "F32": 4}


def decoder(layers, hidden):
    """The tensors that all of them have, and the beginning of their config.json."""
    tensors = [("model.norm.weight", "BF16", [hidden])]
    for n in range(layers):
        tensors += [(f"model.layers.{n}.{name}.weight", "BF16", [hidden]) for name in ("input_layernorm", "post_attention_layernorm")]
    return tensors, {"hidden_size": hidden, "num_hidden_layers": layers, "hidden_act": "silu", "vocab_size": 151936,
                     "max_position_embeddings": 131072, "rms_norm_eps": 1e-6, "tie_word_embeddings": False,
                     "torch_dtype": "bfloat16"}


def feed_forward(prefix, hidden, width):
    return [(f"{prefix}.{name}_proj.weight", "BF16", shape) for name, shape in
            (("gate", [width, hidden]), ("up", [width, hidden]), ("down", [hidden, width]))]


def matrices(prefix, shapes):
    return [(f"{prefix}.{name}.weight", "BF16", shape) for name, shape in shapes.items()]


def spark():
    layers, hidden, width, heads, kv, size = 28, 2048, 6144, 16, 8, 128
    tensors, config = decoder(layers, hidden)
    tensors += [("model.embed_tokens.weight", "BF16", [config["vocab_size"], hidden])]
    for n in range(layers):
        tensors += matrices(f"model.layers.{n}.self_attn", {"q_k_v_proj": [(heads + 2 * kv) * size, hidden], "g_proj": [heads, hidden],
                                                            "o_proj": [hidden, heads * size]})
        tensors += feed_forward(f"model.layers.{n}.mlp", hidden, width)
    rope = {name: {"rope_type": "default", "rope_theta": base, "partial_rotary_factor": share}
            for name, base, share in (("full_attention", 1e6, 0.5), ("sliding_attention", 1e4, 1.0))}
    config.update(architectures=["Spark2_5ForCausalLM"], model_type="spark2_5", num_attention_heads=heads, num_key_value_heads=kv,
                  head_dim=size, intermediate_size=width, hidden_act="gelu", tie_word_embeddings=True, sliding_window=1024,
                  layer_types=["full_attention" if n % 4 == 3 else "sliding_attention" for n in range(layers)],
                  gate_attn_act_mode="sigmoid", headwise_attn_output_gate=True, rope_parameters=rope)
    return config, tensors


def maple():
    layers, hidden, width, experts, heads, kv, size = 24, 2048, 1024, 128, 32, 4, 128
    tensors, config = decoder(layers, hidden)
    tensors += [(f"{name}.weight", "BF16", [config["vocab_size"], hidden]) for name in ("model.embed_tokens", "lm_head")]
    for n in range(layers):
        tensors += matrices(f"model.layers.{n}.self_attn", {
            "q_proj": [heads * size, hidden], "k_proj": [kv * size, hidden], "v_proj": [kv * size, hidden],
            "o_proj": [hidden, heads * size], "q_norm": [size], "k_norm": [size]})
        tensors += matrices(f"model.layers.{n}.mlp", {"gate": [experts, hidden]})
        for e in range(experts):
            tensors += feed_forward(f"model.layers.{n}.mlp.experts.{e}", hidden, width)
    config.update(architectures=["MapleForCausalLM"], model_type="maple", num_attention_heads=heads, num_key_value_heads=kv,
                  head_dim=size, intermediate_size=hidden, moe_intermediate_size=width, num_experts=experts, num_experts_per_tok=8,
                  num_shared_experts=0, norm_topk_prob=True, nope_on_global_attention=True, sliding_window=1024, rope_theta=1e4,
                  layer_types=["full_attention" if n % 4 == 3 else "sliding_attention" for n in range(layers)])
    return config, tensors


def ling():
    layers, hidden, width, dense, experts, heads, size = 42, 2560, 768, 9216, 512, 32, 128
    q_rank, kv_rank, nope, rope, value = 1536, 512, 128, 64, 128
    tensors, config = decoder(layers, hidden)
    tensors += [(f"{name}.weight", "BF16", [config["vocab_size"], hidden]) for name in ("model.word_embeddings", "lm_head")]
    for n in range(layers):
        prefix, inner = f"model.layers.{n}.attention", heads * size
        if n % 7 == 6:
            tensors += matrices(prefix, {
                "q_a_proj": [q_rank, hidden], "q_a_layernorm": [q_rank], "q_b_proj": [heads * (nope + rope), q_rank],
                "kv_a_proj_with_mqa": [kv_rank + rope, hidden], "kv_a_layernorm": [kv_rank],
                "kv_b_proj": [heads * (nope + value), kv_rank], "g_proj": [heads, hidden], "dense": [hidden, heads * value]})
        else:
            tensors += matrices(prefix, {
                **{f"{name}_proj": [inner, hidden] for name in "qkvfg"}, **{f"{name}_conv1d": [inner, 1, 4] for name in "qkv"},
                "b_proj": [heads, hidden], "o_norm": [size], "dense": [hidden, inner]})
            tensors += [(f"{prefix}.A_log", "F32", [heads]), (f"{prefix}.dt_bias", "F32", [inner])]
        prefix = f"model.layers.{n}.mlp"
        if n == 0:
            tensors += feed_forward(prefix, hidden, dense)
            continue
        tensors += matrices(prefix, {"gate": [experts, hidden]}) + [(f"{prefix}.gate.expert_bias", "F32", [experts])]
        tensors += feed_forward(f"{prefix}.shared_experts", hidden, width)
        for e in range(experts):
            tensors += feed_forward(f"{prefix}.experts.{e}", hidden, width)
    limits = [None] + [7.0] * (layers - 1)
    config.update(model_type="bailing_moe_v3", num_attention_heads=heads, num_key_value_heads=heads, head_dim=size,
                  intermediate_size=dense, moe_intermediate_size=width, moe_shared_expert_intermediate_size=width,
                  num_experts=experts, num_experts_per_tok=8, num_shared_experts=1, first_k_dense_replace=1, n_group=8, topk_group=4,
                  norm_topk_prob=True, score_function="sigmoid", routed_scaling_factor=2.5, layer_group_size=7, no_kda_lora=True,
                  kda_safe_gate=True, kda_lower_bound=-5.0, short_conv_kernel_size=4, gated_attention_proj_granularity_type="head_wise",
                  q_lora_rank=q_rank, kv_lora_rank=kv_rank, qk_nope_head_dim=nope, qk_rope_head_dim=rope, v_head_dim=value,
                  rope_theta=6000000, mrope_section=[16, 8, 8], expert_swiglu_limit_list=limits, share_expert_swiglu_limit_list=limits)
    return {"architectures": ["BailingMoeV3VLForConditionalGeneration"], "model_type": "bailing_moe_v3_vl", "text_config": config}, tensors


# Name, weights in billions as the name or llama.cpp says, checkpoint.
MODELS = (("Spark-X2.5-1.7B", 1.7, spark), ("Maple-preview", 20, maple), ("Ling-3.0-flash-VL", 124, ling))


def size_of(dtype, shape):
    count = BYTES[dtype]
    for each in shape:
        count *= each
    return count


def write_weights(folder, tensors):
    """Files with headers and holes, of about SHARD bytes; returns their number."""
    parts, filled = [[]], 0
    for each in sorted(tensors):
        if filled and filled + size_of(*each[1:]) > SHARD:
            parts.append([])
            filled = 0
        parts[-1].append(each)
        filled += size_of(*each[1:])
    index = {}
    for number, part in enumerate(parts, 1):
        file, header, at = f"model-{number:05d}-of-{len(parts):05d}.safetensors", {}, 0
        for name, dtype, shape in part:
            header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size_of(dtype, shape)]}
            at += size_of(dtype, shape)
            index[name] = file
        text = json.dumps(header).encode()
        with open(folder / file, "wb") as out:
            out.write(len(text).to_bytes(8, "little") + text)
            out.truncate(8 + len(text) + at)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": index}))
    return len(parts)


def run(command):
    """Output, seconds, and peak memory in bytes of a program."""
    begin = time.time()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: exit {process.returncode}\n{output}")
    return output, time.time() - begin, usage.ru_maxrss * 1024


def check(program, folder, name, billions, make, tokenizer):
    config, tensors = make()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for file in tokenizer.glob("*.xz"):
        (folder / file.stem).write_bytes(lzma.decompress(file.read_bytes()))
    (folder / "config.json").write_text(json.dumps(config))
    files = write_weights(folder, tensors)
    weights = sum(size_of(dtype, shape) // BYTES[dtype] for _, dtype, shape in tensors)
    print(f"{name}: {weights / 1e9:.1f} billion weights in {len(tensors)} tensors and {files} files of "
          f"{sum(size_of(*t[1:]) for t in tensors) / 1e9:.1f} GB")
    job = folder.parent / f"{name}.yaml"
    job.write_text(f"version: 1\nsource: {{huggingface: {folder}}}\noutputs:\n  - {{gguf: {folder.parent}/{name}-Q4_K_M.gguf, quantize: Q4_K_M}}\n")
    good = abs(weights / 1e9 / billions - 1) < 0.05
    for what, command in (("convert --dry-run", ["convert", folder, "--dry-run", "--outtype", "bf16"]), ("plan Q4_K_M", ["plan", job])):
        output, seconds, memory = run([program, *map(str, command)])
        lines = output.strip().splitlines()
        told = next((line for line in lines if "bits per weight" in line), lines[-1]).strip().replace(f"{folder}/", "")
        print(f"  {what}: {seconds:.1f} s, {memory / 2**20:.0f} MiB; {told}")
        good = good and memory <= MOST_MEMORY
    return good


def main():
    shared = Path(os.environ.get("GGUFMILL_SHARED", ROOT / "../shared"))
    version = re.search(r"^version: (\S+)", (ROOT / "configs/upstream.yaml").read_text(), re.M)[1]
    tokenizer = shared / version / "hf/tokenizers/qwen3"
    if not tokenizer.exists():
        print(f"skipped: there is no {tokenizer}")
        return 77
    with tempfile.TemporaryDirectory() as scratch:
        parent = Path(sys.argv[2] if len(sys.argv) > 2 else scratch)
        parent.mkdir(parents=True, exist_ok=True)
        good = [check(sys.argv[1], parent / name, name, billions, make, tokenizer) for name, billions, make in MODELS]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
