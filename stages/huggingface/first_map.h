#pragma once
// Writes a first map of a checkpoint that no map serves, from a map of similar models.

#include <string>
#include <vector>

#include "pipeline/core/checkpoint.h"
#include "pipeline/core/error.h"
#include "stages/huggingface/map/added_maps.h"

namespace ggufmill {

struct FirstMapOptions {
  std::string folder{};                      // of the checkpoint, or its address
  std::string like{};                        // name or file of the map of similar models; empty: the one that fits best
  std::vector<std::string> architectures{};  // folders and files of maps that are added to the built-in ones
};

// Returns a map that extends the given one and serves the class in config.json. If none is given, it extends the map
// that serves the class; if no map does, the map of text models that matches the most kinds of tensors, less what it
// requires and is missing; of several, the one that reads the most keys of config.json. Its comments list what that map
// does with the checkpoint: the tensors that match a rule, those that match none, with rules to complete, those that
// are required and missing, the metadata that has no value, the keys of config.json that no rule reads, and the hash of
// an unknown pre-tokenizer. Reads the checkpoint's files except the weights, of which it reads the headers. Exit code 2
// for an unknown map, 4 for a checkpoint that cannot be read.
Result<std::string> first_map(const FirstMapOptions& options, const CheckpointOpener& open);

}  // namespace ggufmill
