#pragma once
// LLaMA files older than GGUF as a source: GGML, GGMF version 1 and GGJT versions 1 to 3.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "pipeline/config/registry.h"
#include "pipeline/core/stage.h"

namespace ggufmill {

namespace ggml {
// Values that these files do not contain.
struct SourceOptions {
  std::string file{};
  std::optional<std::string> name{};         // nullopt: the file name
  std::optional<std::string> description{};  // nullopt: states the format it was converted from
  std::uint64_t query_groups = 1;            // query heads per key-value head; 8 for LLaMA 2 70B
  double epsilon = 5e-6;                     // of the RMS norms: 1e-6 for LLaMA 1, 1e-5 for LLaMA 2
  std::uint32_t context_length = 2048;       // 4096 for LLaMA 2
  Origin origin{};
};

// Reads a model as make_ggml_source() documents: magic and version, seven parameters, the vocabulary, then each tensor
// after its description.
Result<Model> read_model(const SourceOptions& options);
}  // namespace ggml

// Returns a source that yields the model that convert_llama_ggml_to_gguf.py makes of such a file (llama.cpp, MIT): the
// same metadata in the same order, the same names, and the unchanged bytes of the file. Does not read weights.
// Quantized tensors are accepted from GGJT 3 and, except for Q4_0, Q4_1 and Q8_0, from GGJT 2; older versions have
// different blocks. Fails with exit code 4 for other quantized tensors and malformed input, 2 if the options do not
// match the file.
std::unique_ptr<Source> make_ggml_source(ggml::SourceOptions options);
// Returns the specification of `ggml: FILE` or `ggml: {file: FILE, name: .., epsilon: 1e-5, ..}`.
SourceSpec ggml_source();

}  // namespace ggufmill
