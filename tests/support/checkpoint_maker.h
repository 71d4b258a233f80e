#pragma once
// Checkpoint folders of Hugging Face made of a spec: what ../shared/hf/make_checkpoint.py makes, but for the layout of
// its JSON files. Weights are those of synth.h and some of bits alone.

#include <boost/json/value.hpp>
#include <filesystem>
#include <string>

namespace ggufmill {

// Everything but weights: config.json, generation_config.json, the tokenizer's files and further ones. `hf`: where the
// folder tokenizers/ is. Throws std::runtime_error.
void make_checkpoint_files(const std::filesystem::path& hf, const boost::json::value& spec,
                           const std::filesystem::path& folder);

// `parent`/FOLDER with weights, too; returns its path. Throws std::runtime_error.
std::filesystem::path make_checkpoint(const std::filesystem::path& hf, const boost::json::value& spec,
                                      const std::filesystem::path& parent);

// A JSON file that xz has made smaller.
boost::json::value read_xz_json(const std::filesystem::path& path);

}  // namespace ggufmill
