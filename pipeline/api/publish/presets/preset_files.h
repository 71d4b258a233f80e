#pragma once
// Files that tell programs how to run the models of a set: the Modelfile of Ollama, the presets of llama-server, and a
// preset of LM Studio.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/api/publish/presets/go_template.h"
#include "pipeline/core/metadata.h"

namespace ggufmill {

// How the authors of a model sample its tokens: what `general.sampling.*` of a file says, which is from
// generation_config.json.
struct Sampling {
  std::optional<double> temperature{}, top_p{}, min_p{}, repeat_penalty{};
  std::optional<std::int64_t> top_k{}, repeat_last_n{};
};
Sampling sampling_of(const Metadata& metadata);

struct PresetModel {
  std::string name;         // of the set, for a heading
  std::string file;         // the path that the preset has, relative to its folder
  std::string projector{};  // likewise; empty: none
  bool is_embedding = false;
};

struct PresetFacts {
  Sampling sampling{};
  std::optional<std::uint64_t> context{};  // tokens; none: the program's own default
  ChosenTemplate chat{};
};

// Returns the Modelfile of Ollama.
std::string modelfile(const PresetModel& model, const PresetFacts& facts);
// Returns the presets that llama-server reads with --models-preset. Sampling is in the files, which llama.cpp reads.
std::string llama_server_presets(const std::vector<PresetModel>& models, std::optional<std::uint64_t> context);
// Returns a preset of LM Studio, as it exports and imports them.
std::string lm_studio_preset(const std::string& name, const PresetFacts& facts);

}  // namespace ggufmill
