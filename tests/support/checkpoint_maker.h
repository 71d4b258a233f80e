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

// A checkpoint with several parts has a text model, encoders of images, and a layer that predicts further tokens.
// Returns its spec for make_checkpoint(): the text model of one case in ../shared/hf-more with the
// encoders of another. `specs` is the folder of the cases. Throws std::runtime_error.
boost::json::value spec_with_all_parts(const fs::path& specs);

// Creates the checkpoint in `parent` and returns its path; empty if the shared data is missing.
std::string checkpoint_with_all_parts(const fs::path& parent);

}  // namespace ggufmill
