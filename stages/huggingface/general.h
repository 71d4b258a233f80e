#pragma once
// The metadata of a checkpoint that says what it is, not how it works: `general.*`, as convert_hf_to_gguf.py of
// llama.cpp gathers it from README.md, config.json, generation_config.json and the folder's name.

#include <boost/json/object.hpp>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/core/metadata.h"
#include "stages/huggingface/model_id.h"

namespace ggufmill {

struct GeneralOptions {
  std::string folder;
  std::optional<std::string> model_name{};     // general.name, whatever the files say
  std::optional<std::string> metadata_file{};  // JSON: {"general.author": "...", "general.base_models": [{...}], ...}
};

struct General {
  // general.type and what follows it, in the reference's order; not the architecture, the file type and the
  // quantization version.
  Metadata metadata;
  ModelId id;  // what of it makes the name of an output
  std::vector<std::string> warnings;
};

// The name of a checkpoint's folder or address; for "." and ".." that of the folder they stand for.
std::string folder_name(const std::string& folder);

// `config` is config.json. Without weights (all counts 0) sizes in names are believed, and none is computed. What the
// reference overlooks is overlooked: a README.md without a card, a generation_config.json that is no JSON. A value of
// a type that the key cannot have is an error (code kBadInput) that names file and key.
Result<General> read_general(const GeneralOptions& options, const boost::json::object& config,
                             const WeightCount& weights);

}  // namespace ggufmill
