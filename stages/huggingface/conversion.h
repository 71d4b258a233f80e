#pragma once
// A checkpoint folder as the model that convert_hf_to_gguf.py of llama.cpp makes of it: the same metadata and tensors
// in the same order and types, and with the same values.

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/core/checkpoint.h"
#include "pipeline/core/model.h"
#include "stages/huggingface/model_id.h"

namespace ggufmill {
namespace huggingface {

// The type that tensors of two dimensions and more get; kAuto: BF16 or F16, as the first of them has it.
enum class OutType { kAuto, kF32, kF16, kBf16, kQ8_0, kTq1_0, kTq2_0 };
std::vector<std::string> out_type_names();  // "auto", "f32", ...
std::optional<OutType> out_type_named(std::string_view name);

enum class DraftHead { kInclude, kLeaveOut, kOnly };  // layers that predict further tokens

// The words for SourceOptions::class_defaults, false and true.
inline constexpr std::array<std::string_view, 2> kClassDefaultsWords{"none", "transformers"};

struct SourceOptions {
  std::string folder;
  OutType out_type = OutType::kAuto;
  std::string architecture{};  // a built-in map's name, or a file; empty: as config.json says
  std::string config{};        // the name of the file that says what the model is; empty: the map's, or config.json
  std::optional<std::string> model_name{};
  std::optional<std::string> metadata_file{};
  std::optional<std::string> pre{};  // tokenizer.ggml.pre, where it cannot be found
  bool vocabulary_only = false;
  bool fuse_gate_up_experts = false;
  bool fp8_as_q8_0 = false;
  DraftHead draft_head = DraftHead::kInclude;
  bool class_defaults = true;  // config.json is completed as transformers does it
  Origin origin{};
};

}  // namespace huggingface

// What a converted checkpoint is called: parts of its name, and its file type ("BF16").
struct CheckpointName {
  ModelId id;
  std::string file_type;
};

// The error of a path that is no folder, with a hint for what is the name of a model on the hub.
Error no_checkpoint_folder(const std::string& path);

// Reads config.json, the tokenizer and the headers of the weights; no weights.
struct ConvertedCheckpoint {
  Model model;
  CheckpointName name;
};
Result<ConvertedCheckpoint> read_huggingface(const huggingface::SourceOptions& options, const CheckpointOpener& open);

}  // namespace ggufmill
