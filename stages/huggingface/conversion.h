#pragma once
// Converts a checkpoint folder to the model that llama.cpp's convert_hf_to_gguf.py produces: the same metadata and the
// same tensors in the same order, with the same types and values.

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pipeline/core/checkpoint.h"
#include "pipeline/core/stage.h"
#include "stages/huggingface/checkpoint/adapter.h"
#include "stages/huggingface/map/added_maps.h"
#include "stages/huggingface/model_id.h"

namespace ggufmill::huggingface {

enum class DraftHead { kInclude, kLeaveOut };  // layers that predict further tokens

struct SourceOptions {
  std::string folder{};
  ModelPart part = ModelPart::kText;
  OutType out_type = OutType::kAuto;
  std::string architecture{};             // name of a map, or a file; empty: according to config.json
  std::vector<MapPlace> architectures{};  // maps to add to the built-in ones; the first take precedence
  std::string config{};                   // name of the file that describes the model; empty: the map's, or config.json
  std::optional<std::string> model_name{};
  std::optional<std::string> metadata_file{};
  std::optional<std::string> pre{};  // tokenizer.ggml.pre, if it cannot be determined
  bool vocabulary_only = false;
  bool fuse_gate_up_experts = false;
  bool fuse_qkv = false;  // one tensor for the queries, keys, and values of a layer
  bool fp8_as_q8_0 = false;
  bool allow_missing = false;  // missing tensors and wrong shapes are warnings
  bool dense_modules = false;  // append the Dense modules of sentence-transformers
  DraftHead draft_head = DraftHead::kInclude;
  std::string adapter{};       // name of a LoRA adapter in the checkpoint, instead of the model; empty: none
  bool dspark = false;         // the DSpark draft in the checkpoint instead of the model
  std::string target{};        // folder of the model for which the checkpoint is a draft
  bool class_defaults = true;  // has no effect: config.json is always completed as transformers does
  Origin origin{};

  MissingFiles missing_files() const;  // as `allow_missing` asks
};

// The name of a converted checkpoint: the parts of its name, and its file type ("BF16").
struct CheckpointName {
  ModelId id;
  std::string file_type;
};

// An adapter in the format of PEFT, and the model that it belongs to.
struct AdapterOptions {
  std::string adapter{};  // folder
  std::string base{};     // folder with the base's config.json; weights are not needed
  OutType out_type = OutType::kF32;
  std::string architecture{};             // see SourceOptions
  std::vector<MapPlace> architectures{};  // see SourceOptions
  bool class_defaults = true;             // see SourceOptions
  PairUse use = PairUse::kStored;
  Origin origin{};
};

// The result of read_huggingface(), which reads config.json, the tokenizer and the headers of the weights, but not the
// weights.
struct ConvertedCheckpoint {
  Model model;
  CheckpointName name;
};

}  // namespace ggufmill::huggingface

namespace ggufmill {

// Returns the error for a path that is not a folder, with a hint if it looks like the name of a model on the hub.
Error no_checkpoint_folder(const std::string& path);

Result<huggingface::ConvertedCheckpoint> read_huggingface(const huggingface::SourceOptions& options,
                                                          const CheckpointOpener& open);
// Reads one model per request, which replaces the options' part and type. The models share their files.
Result<std::vector<huggingface::ConvertedCheckpoint>> read_huggingface_parts(const huggingface::SourceOptions& options,
                                                                             std::span<const PartRequest> requests,
                                                                             const CheckpointOpener& open);

// Converts an adapter as llama.cpp's convert_lora_to_gguf.py does: what the base's map does to a weight is done to the
// pair of matrices of each adapted weight. See pipeline/core/adapter.h for the result. Also reads adapter_config.json
// and the headers of the adapter's weights, and those of the base if its folder has weights.
Result<huggingface::ConvertedCheckpoint> read_huggingface_adapter(const huggingface::AdapterOptions& options,
                                                                  const CheckpointOpener& open);

}  // namespace ggufmill
