#pragma once
// Creates Hugging Face checkpoint folders from a spec. The files equal those of ../shared/hf/make_checkpoint.py, except
// for the layout of the JSON files. Weights come from synth.h, and some are random bits.

#include <boost/json/value.hpp>
#include <string>

#include "pipeline/io/platform/filesystem.h"

namespace ggufmill {

// Writes everything except weights: config.json, generation_config.json, the tokenizer's files and others. `hf` is the
// folder that contains tokenizers/. Throws std::runtime_error.
void make_checkpoint_files(const fs::path& hf, const boost::json::value& spec, const fs::path& folder);

// Creates `parent`/FOLDER, including weights, and the further folders of the spec; returns the path of the first.
// Throws std::runtime_error.
fs::path make_checkpoint(const fs::path& hf, const boost::json::value& spec, const fs::path& parent);

// Reads a JSON file compressed with xz.
boost::json::value read_xz_json(const fs::path& path);

}  // namespace ggufmill
