#pragma once
// Checkpoints whose weights are quantized already: their numbers, as the reference decodes them, or the same blocks in
// GGUF's form.

#include <vector>

#include "stages/huggingface/tensor_map.h"
#include "stages/huggingface/values.h"

namespace ggufmill::huggingface {

struct DecodedCheckpoint {
  std::vector<NamedTensor> tensors;  // without scales and the like
  bool is_mxfp4 = false;             // its experts are repacked by the architecture's map
  bool is_nvfp4 = false;
};

// As `quantization_config` of config.json (or hf_quant_config.json) says; unchanged where it says nothing. Known are
// FP8 with scales per block, row or tensor; compressed-tensors (FP8, int8, int4, NVFP4); ModelOpt (FP8, NVFP4); GPTQ
// and AWQ of 2, 4 and 8 bits; MXFP4. What stands for new tensors (GPTQ, AWQ, int4) comes last. Reads scales of one
// number; no weights. Exit code 4 for a method that is not known, and for scales that are missing or do not fit. Source
// of the layouts: conversion/base.py of llama.cpp (MIT), and for AWQ the checkpoints' own library, AutoAWQ (MIT).
Result<DecodedCheckpoint> decode_checkpoint(const Facts& facts, std::vector<NamedTensor> tensors);

}  // namespace ggufmill::huggingface
