#pragma once
// Opens a model given only its path, for code that inspects models but does not write any.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/config/registry.h"
#include "pipeline/core/model.h"
#include "stages/huggingface/conversion.h"

namespace ggufmill {

// Options of a source, as in a pipeline file. A source that does not have an option ignores it.
using SourceSettings = std::vector<std::pair<std::string, std::string>>;

// Two views of a single file that a source converts because of its contents, such as the safetensors file of a
// diffusion model.
enum class FileForm : std::uint8_t {
  kStored,     // with its own tensors
  kConverted,  // as the model that the source makes of it
};

// The treatment of a checkpoint with missing files or tensors.
enum class Incomplete : std::uint8_t { kWarn, kRefuse };

// Opens `path` with the source of the registry that fits it best. Reads headers, never weights. Returns the errors of
// the sources; exit code 4 for malformed files.
Result<Model> open_model(const std::string& path, SourceSettings settings, const Registry& registry,
                         FileForm form = FileForm::kStored, Incomplete incomplete = Incomplete::kWarn);

}  // namespace ggufmill
