#pragma once
// The entry points of the fuzzers, which the tests call as well. Each accepts arbitrary bytes and returns a description
// of the defect it has found, or an empty string. Seeds include valid and hostile inputs.

#include <string>
#include <string_view>
#include <vector>

namespace ggufmill {

// Reads `bytes` as a GGUF file; if it contains a model, lays it out and reads it back. Defects: an incomplete error, a
// tensor outside the file, or a model that changes in the round trip.
std::string fuzz_gguf(std::string_view bytes);
// Returns seeds of every version and byte order; the first seven are valid.
std::vector<std::string> gguf_seeds();

// Converts `bytes` if they are a GGUF file with a model: unchanged, to F32, with a recipe and to a type, with both
// engines and every `nonfinite`. Defects: an incomplete error or one that leaves files behind, an output that `verify`
// rejects, or a copy that differs. Not thread-safe.
std::string fuzz_convert(std::string_view bytes);
std::vector<std::string> convert_seeds();

// Does the same for a safetensors file, as a checkpoint.
std::string fuzz_safetensors(std::string_view bytes);
std::vector<std::string> safetensors_seeds();

// Reads a file of torch.save. Defects: an incomplete error, or a tensor outside the file.
std::string fuzz_torch(std::string_view bytes);
std::vector<std::string> torch_seeds();

// Reads tokenizer.json and, after a zero byte, tokenizer_config.json, with every reader. Defects: an incomplete error,
// or an inconsistent vocabulary.
std::string fuzz_tokenizer_json(std::string_view bytes);
std::vector<std::string> tokenizer_json_seeds();
// Reads a list of tokens, one per line, in the format of RWKV and PLaMo.
std::string fuzz_token_list(std::string_view bytes);
std::vector<std::string> token_list_seeds();
// Reads tokenizer.model.
std::string fuzz_tokenizer_model(std::string_view bytes);
std::vector<std::string> tokenizer_model_seeds();

// Reads `yaml` as the map of an architecture; if it is valid, uses it to build metadata and tensors from a small
// checkpoint. Defects: an incomplete error, or tensors with the same name.
std::string fuzz_architecture(std::string_view yaml);
// Returns the built-in maps.
std::vector<std::string> architecture_seeds();

// Reads adapter_config.json and, after a zero byte, the names of the adapter's tensors, one per line. Defects: an
// incomplete error, or a product whose matrices are lost. Not thread-safe.
std::string fuzz_adapter(std::string_view bytes);
std::vector<std::string> adapter_seeds();

// Reads a pipeline file and, after a zero byte, the text of a --set. Defects: an error with an empty or far too long
// message, or neither a job nor an error.
std::string fuzz_pipeline(std::string_view bytes);
// Returns the files of configs/; must be called from the repository's root.
std::vector<std::string> pipeline_seeds();

// Reads a covariance file, and merges it with itself. Defects: an incomplete error, numbers that are accepted although
// they are not correlations, or a sum of two files that cannot be read.
std::string fuzz_covariance(std::string_view bytes);
std::vector<std::string> covariance_seeds();

// Read a written plan, a journal or a manifest. Defects: an incomplete error, or content that changes when it is
// written and read back.
std::string fuzz_plan(std::string_view bytes);
std::vector<std::string> plan_seeds();
std::string fuzz_journal(std::string_view bytes);
std::vector<std::string> journal_seeds();
std::string fuzz_manifest(std::string_view bytes);
std::vector<std::string> manifest_seeds();

// Reads a LLaMA file in a format older than GGUF. Defects: an incomplete error, or a tensor outside the file.
std::string fuzz_ggml(std::string_view bytes);
std::vector<std::string> ggml_seeds();

// Reads a measurement. Defects: the same as for a plan.
std::string fuzz_measurement(std::string_view bytes);
std::vector<std::string> measurement_seeds();

// Read job.json, matrix.json, and the markers of a cluster job's parts and seal. Defects: the same as for a plan.
std::string fuzz_cluster_job(std::string_view bytes);
std::vector<std::string> cluster_job_seeds();
std::string fuzz_cluster_matrix(std::string_view bytes);
std::vector<std::string> cluster_matrix_seeds();
std::string fuzz_cluster_marker(std::string_view bytes);
std::vector<std::string> cluster_marker_seeds();

// Reads an importance file of either format, and the last weights of each entry.
std::string fuzz_importance(std::string_view bytes);
std::vector<std::string> importance_seeds();

// Reads a recipe file. The seeds are the built-in recipes.
std::string fuzz_recipe(std::string_view yaml);
std::vector<std::string> recipe_seeds();

// Wrap KernelFuzz::run() and KernelFuzz::seeds(); see kernel_entry.h.
std::string fuzz_kernel(std::string_view bytes);
std::vector<std::string> kernel_seeds();

}  // namespace ggufmill
