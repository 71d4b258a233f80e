#pragma once
// What is fuzzed, by the fuzzers and by the tests alike. Each entry takes any bytes, and returns what is broken, else
// nothing. Seeds are good inputs and hostile ones.

#include <string>
#include <string_view>
#include <vector>

namespace ggufmill {

// Reads `bytes` as a GGUF file, and when they are a model lays it out and reads that back. Broken: an error without its
// parts, a tensor outside the file, or a model that does not come back the same.
std::string fuzz_gguf(std::string_view bytes);
// Of every version and byte order; the first seven are good.
std::vector<std::string> gguf_seeds();

// Converts `bytes`, when they are a GGUF file with a model: as it is, and to F32, a recipe and a type, by both engines,
// with every `nonfinite`. Broken: an error without its parts or that leaves files, an output that `verify` finds
// something in, or a copy that is not the same. Not thread-safe.
std::string fuzz_convert(std::string_view bytes);
std::vector<std::string> convert_seeds();

// The same of a safetensors file, as a checkpoint.
std::string fuzz_safetensors(std::string_view bytes);
std::vector<std::string> safetensors_seeds();

// Reads a file of torch.save. Broken: an error without its parts, or a tensor outside the file.
std::string fuzz_torch(std::string_view bytes);
std::vector<std::string> torch_seeds();

// Reads tokenizer.json, and after a zero byte tokenizer_config.json, in every way that there is. Broken: an error
// without its parts, or a vocabulary that contradicts itself.
std::string fuzz_tokenizer_json(std::string_view bytes);
std::vector<std::string> tokenizer_json_seeds();
// Reads a list of tokens, a line each, as RWKV and PLaMo have it.
std::string fuzz_token_list(std::string_view bytes);
std::vector<std::string> token_list_seeds();
// Reads tokenizer.model.
std::string fuzz_tokenizer_model(std::string_view bytes);
std::vector<std::string> tokenizer_model_seeds();

// Reads `yaml` as the map of an architecture, and when it is one makes metadata and tensors of a small checkpoint by
// it. Broken: an error without its parts, or tensors of one name.
std::string fuzz_architecture(std::string_view yaml);
// The maps that are built in.
std::vector<std::string> architecture_seeds();

// Reads a pipeline file, and after a zero byte the text of a --set. Broken: an error that says nothing or far too much,
// or neither a job nor an error.
std::string fuzz_pipeline(std::string_view bytes);
// Those of configs, from the repository's root.
std::vector<std::string> pipeline_seeds();

// Reads a written plan, a journal, a manifest: broken is an error without its parts, and what does not come back the
// same once it is written.
std::string fuzz_plan(std::string_view bytes);
std::vector<std::string> plan_seeds();
std::string fuzz_journal(std::string_view bytes);
std::vector<std::string> journal_seeds();
std::string fuzz_manifest(std::string_view bytes);
std::vector<std::string> manifest_seeds();

// Reads a LLaMA file of before GGUF. Broken: an error without its parts, or a tensor outside the file.
std::string fuzz_ggml(std::string_view bytes);
std::vector<std::string> ggml_seeds();

// Reads a measurement: broken as of a plan.
std::string fuzz_measurement(std::string_view bytes);
std::vector<std::string> measurement_seeds();

// Reads job.json, matrix.json, and the markers of a cluster job's parts and seal: broken as of a plan.
std::string fuzz_cluster_job(std::string_view bytes);
std::vector<std::string> cluster_job_seeds();
std::string fuzz_cluster_matrix(std::string_view bytes);
std::vector<std::string> cluster_matrix_seeds();
std::string fuzz_cluster_marker(std::string_view bytes);
std::vector<std::string> cluster_marker_seeds();

// Reads an importance file of either form, and the last weights of each entry.
std::string fuzz_importance(std::string_view bytes);
std::vector<std::string> importance_seeds();

// Reads a recipe file. The seeds are those that are built in.
std::string fuzz_recipe(std::string_view yaml);
std::vector<std::string> recipe_seeds();

// KernelFuzz::run() and its seeds; see kernel_entry.h.
std::string fuzz_kernel(std::string_view bytes);
std::vector<std::string> kernel_seeds();

}  // namespace ggufmill
