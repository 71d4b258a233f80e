#pragma once
// Checkpoints with quantized weights: decodes them to numbers as the reference does, or repacks their blocks in GGUF's
// layout.

#include <boost/json/object.hpp>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "pipeline/io/platform/filesystem.h"
#include "stages/huggingface/checkpoint/named_tensor.h"

namespace ggufmill::huggingface {

struct DecodedCheckpoint {
  std::vector<NamedTensor> tensors;  // without scales and other auxiliary tensors
  bool is_mxfp4 = false;             // the architecture's map repacks the experts
  bool has_mxfp4 = false;            // weights were repacked as MXFP4
  bool is_nvfp4 = false;
  const TypeInfo* block_type = nullptr;  // of the first weight stored as GGML blocks; null if there is none
};

// Treatment of weights stored as GGML blocks.
enum class Blocks { kKeep, kDecode };

// A weight whose rows, in several parts, were distributed over ranks: the rows of the first rank's share of every part
// come first, then those of the second rank. Scales for blocks of rows start over with every rank.
struct ShardedRows {
  std::vector<std::uint64_t> parts;  // rows of each part in all ranks together
  std::vector<std::uint64_t> ranks;  // possible numbers of ranks; the first that the number of scales fits is right
};

// Returns the name that a module of the configuration has among the tensors; nullopt if it is dropped.
using ModuleRenamer = std::function<Result<std::optional<std::string>>(const std::string& module)>;

struct DecodeOptions {
  Blocks blocks = Blocks::kKeep;
  std::unordered_map<std::string, ShardedRows> sharded{};  // by the weight's name
  ModuleRenamer rename{};                                  // empty: modules have the same names in both
  const TypeInfo* target = nullptr;  // that most weights will be converted to; null if it is not known
};

// Decodes the tensors as `quantization_config` of config.json (or hf_quant_config.json) specifies; returns them
// unchanged if there is no such configuration. Supported are FP8 with scales per block, row or tensor;
// compressed-tensors (FP8, int8, int4, NVFP4, MXFP4, each weight by its group); ModelOpt (FP8, NVFP4, GGML blocks);
// GPTQ and AWQ of 2, 4 and 8 bits; BitNet; MXFP4. With or without such a configuration, also the codes of MLX, whose
// own key is `quantization`, and of bitsandbytes (nf4, fp4, int8); see mlx.cpp and bitsandbytes.cpp. Also weights
// X.weight of FP8 in blocks of 128 x 128 or of MXFP4 with scales X.scale of E8M0, as DeepSeek V4 has them, and with
// `store_dtype: mxfp4` MXFP4 with scales X.weight_scale, as MiMo V2 has them beside FP8. Newly assembled tensors (GPTQ,
// AWQ, int4) come last. Reads scales of one number, but no weights. Exit code 4 for an unknown method, and for scales
// that are missing or do not fit. Source of the layouts: conversion/base.py and deepseek.py of llama.cpp (MIT), and for
// AWQ its own library, AutoAWQ (MIT); for GGML blocks docs/source/deployment/3_unified_hf.rst of NVIDIA's Model
// Optimizer (Apache-2.0).
Result<DecodedCheckpoint> decode_checkpoint(const fs::path& folder, const boost::json::object& config,
                                            std::vector<NamedTensor> tensors, const DecodeOptions& options = {});

}  // namespace ggufmill::huggingface
