#pragma once
// The metadata that identifies a checkpoint, as opposed to describing how it works: `general.*`, as llama.cpp's
// convert_hf_to_gguf.py collects it from README.md, config.json, generation_config.json and the folder's name.

#include <boost/json/object.hpp>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/core/metadata.h"
#include "pipeline/io/platform/filesystem.h"
#include "stages/huggingface/model_id.h"

namespace ggufmill::huggingface {

struct GeneralOptions {
  std::string folder;
  std::optional<std::string> model_name{};     // general.name; overrides the files
  std::optional<std::string> metadata_file{};  // JSON: {"general.author": "...", "general.base_models": [{...}], ...}
  std::string type = "model";                  // general.type
};

struct General {
  // general.type and the keys after it, in the reference's order, except the architecture, the file type and the
  // quantization version.
  Metadata metadata;
  ModelId id;  // the parts that form the name of an output
  std::vector<std::string> warnings;
};

// Returns the name of a checkpoint's folder or address. "." and ".." are resolved to the folder that they refer to.
std::string folder_name(const std::string& folder);

// Collects the general metadata. `config` is config.json. Without weights (all counts 0), sizes in names are accepted
// unchecked, and no size is computed. Ignores the files that the reference ignores: a README.md without a card, a
// generation_config.json that is not JSON. A value of a type that the key does not allow is an error (code kBadInput)
// that names the file and the key.
Result<General> read_general(const GeneralOptions& options, const boost::json::object& config,
                             const WeightCount& weights);

// Returns the model card of a checkpoint: the YAML at the start of its README.md, between the first line, "---", and
// the next "---". Plain scalars are typed according to YAML 1.1
// (`no` is false, 7 a number), but dates remain text. Returns an empty object if README.md is missing, does not begin
// with such a line, or does not contain a map; the last case adds a warning. Errors have the code kBadInput and name
// the place. Reads at most 2 MiB of the file.
Result<boost::json::object> read_model_card(const fs::path& folder, std::vector<std::string>& warnings);

}  // namespace ggufmill::huggingface
