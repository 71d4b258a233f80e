#pragma once
// LLaMA files of before GGUF as a source: GGML, GGMF version 1 and GGJT versions 1 to 3.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "pipeline/config/registry.h"
#include "pipeline/core/stage.h"

namespace ggufmill {

namespace ggml {
// What these files do not say.
struct SourceOptions {
  std::string file{};
  std::optional<std::string> name{};         // none: the file's name
  std::optional<std::string> description{};  // none: what it was converted from
  std::uint64_t query_groups = 1;            // heads for each head of keys and values; 8 for LLaMA 2 70B
  double epsilon = 5e-6;                     // of the RMS norms: 1e-6 for LLaMA 1, 1e-5 for LLaMA 2
  std::uint32_t context_length = 2048;       // 4096 for LLaMA 2
  Origin origin{};
};
}  // namespace ggml

// The model that convert_llama_ggml_to_gguf.py makes of such a file (llama.cpp, MIT): its metadata in its order, its
// names, the file's bytes. Weights are not touched. Quantized tensors are those of GGJT 3 alone, or, but for Q4_0, Q4_1
// and Q8_0, of GGJT 2: what came before has other blocks. Exit code 4 for these and for what is malformed; 2 where the
// options do not fit the file.
std::unique_ptr<Source> make_ggml_source(ggml::SourceOptions options);
// `ggml: FILE`, or `ggml: {file: FILE, name: .., epsilon: 1e-5, ..}`.
SourceSpec ggml_source();

}  // namespace ggufmill
