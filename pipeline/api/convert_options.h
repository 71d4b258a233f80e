#pragma once
// The arguments of `ggufmill convert`, which are those of convert_hf_to_gguf.py, and the pipeline file they stand for.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/core/error.h"
#include "stages/huggingface/huggingface_source.h"

namespace ggufmill {

struct ConvertOptions {
  std::string folder;
  std::string outfile{};         // empty, or a folder: the name that the reference makes, in `folder` or there
  std::string outtype = "auto";  // f32, f16, bf16, q8_0, tq1_0, tq2_0, auto
  std::optional<std::string> model_name{}, metadata{};
  std::uint64_t split_max_size = 0, split_max_tensors = 0;  // 0: no limit
  bool no_tensor_first_split = false, bigendian = false, vocab_only = false;
  bool mtp = false, no_mtp = false, fuse_gate_up_exps = false, fp8_as_q8 = false, mistral_format = false;
  bool class_defaults = true;  // config.json is completed as transformers does it
  bool is_split() const { return split_max_size != 0 || split_max_tensors != 0 || no_tensor_first_split; }
};

// What config.json may name under `architectures`, sorted.
Result<std::vector<std::string>> convertible_classes();

// "20G", "300M", "1000": decimal K, M and G alone, as the reference has them. 0: no limit.
Result<std::uint64_t> parse_split_size(const std::string& word);

// The source that these options stand for; outtype is one of those above.
huggingface::SourceOptions source_of(const ConvertOptions& options);

// Says what a checkpoint is called, which takes reading it, but for its weights.
using CheckpointNamer = std::function<Result<CheckpointName>(const huggingface::SourceOptions& source)>;

// The pipeline file. Asks for the checkpoint's name where that makes the output's. Exit code 2 for arguments that
// cannot be obeyed; pipeline/api/convert.md says what differs from the reference.
Result<std::string> pipeline_of(const ConvertOptions& options, const CheckpointNamer& name_of_checkpoint);

}  // namespace ggufmill
