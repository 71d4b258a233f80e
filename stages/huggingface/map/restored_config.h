#pragma once
// The config.json of a checkpoint, made from the metadata and tensors of a GGUF file: the metadata rules of a map read
// backwards, for the maps that name the classes of the checkpoints (`checkpoint`).

#include <boost/json/object.hpp>
#include <string>

#include "pipeline/core/model.h"
#include "pipeline/io/platform/filesystem.h"
#include "stages/huggingface/map/added_maps.h"

namespace ggufmill::huggingface {

struct RestoredConfig {
  boost::json::object config;
  std::string map;  // name or path of the map whose rules were read
};

// Makes the config.json. `folder`: that of the checkpoint, which need not exist. The rules of the map, applied to it,
// give the same metadata; otherwise, it is an error. Reads maps, and no weights. Errors have exit code 2, no place, and
// no advice. Thread-safe.
Result<RestoredConfig> restored_config(const Model& model, const fs::path& folder, const AddedMaps& added);

}  // namespace ggufmill::huggingface
