#pragma once
// The arguments of `ggufmill convert` and `ggufmill convert-lora`, which are those of convert_hf_to_gguf.py and
// convert_lora_to_gguf.py, and the equivalent pipeline files.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/core/error.h"
#include "stages/huggingface/huggingface_source.h"

namespace ggufmill {

// The options of both about what is written.
struct ConversionOutput {
  std::string
      outfile{};  // file or folder; empty: the folder that is converted. In a folder: the reference's default name
  bool bigendian = false;
  std::vector<std::string> architectures{};  // folders and files of maps that are added to the built-in ones
};

struct ConvertOptions : ConversionOutput {
  std::string folder{};
  std::string outtype = "auto";  // f32, f16, bf16, q8_0, tq1_0, tq2_0, auto
  std::optional<std::string> model_name{}, metadata{};
  std::string split_max_size = "0";     // as parse_split_size() reads it
  std::uint64_t split_max_tensors = 0;  // 0: no limit
  bool no_tensor_first_split = false, vocab_only = false;
  bool mmproj = false, mtp = false, no_mtp = false, dspark = false, fuse_gate_up_exps = false, fuse_qkv = false,
       fp8_as_q8 = false, allow_missing = false, mistral_format = false, sentence_transformers_dense_modules = false;
  std::string target_model_dir{};  // of the model for which the checkpoint is a draft
};

struct ConvertLoraOptions : ConversionOutput {
  std::string adapter{};
  std::string base{};           // empty: as adapter_config.json states, if that is a local folder
  std::string outtype = "f32";  // f32, f16, bf16, q8_0, auto
};

// Returns the sorted class names that config.json may list under `architectures`, each once. `maps`: folders and files
// of maps that are added to the built-in ones.
Result<std::vector<std::string>> convertible_classes(const std::vector<std::string>& maps = {});

// Parses "20G", "300M" or "1000": only decimal K, M and G, as in the reference. 0: no limit.
Result<std::uint64_t> parse_split_size(const std::string& word);

// Returns the equivalent source options; outtype must be one of those listed above.
huggingface::SourceOptions source_of(const ConvertOptions& options);

// Return the equivalent pipeline files. They read everything in the checkpoint or adapter except the weights if the
// output's name depends on it. They fail with exit code 2 for unusable arguments; pipeline/llama_cpp/convert.md lists
// the differences from the reference.
Result<std::string> pipeline_of(const ConvertOptions& options);
Result<std::string> pipeline_of(const ConvertLoraOptions& options);

// The same with functions that return the name of a checkpoint or an adapter.
using CheckpointNamer = std::function<Result<huggingface::CheckpointName>(const huggingface::SourceOptions& source)>;

using AdapterNamer = std::function<Result<huggingface::CheckpointName>(const huggingface::AdapterOptions& source)>;

Result<std::string> pipeline_of(const ConvertOptions& options, const CheckpointNamer& name_of_checkpoint);
Result<std::string> pipeline_of(const ConvertLoraOptions& options, const AdapterNamer& name_of_adapter);

}  // namespace ggufmill
