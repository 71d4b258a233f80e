#pragma once
// The model card of the model that a job starts from: the YAML at the start of its README.md.

#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/error.h"

namespace ggufmill {

// The keys that the card of a quantized model takes over. Keys are those of the Hugging Face Hub's model cards
// (https://huggingface.co/docs/hub/model-cards). An empty member is a missing key; a list of one item may be a scalar
// in the file.
struct BaseCard {
  std::vector<std::string> license;
  std::string license_name;
  std::string license_link;  // a URL, or a file of the base model's repository
  std::vector<std::string> language;
  std::string pipeline_tag;
  std::string library_name;
  std::vector<std::string> tags;
  std::vector<std::string> base_model;  // what it was made from itself
  std::string base_model_relation;      // "finetune", "merge", ...
  std::vector<std::string> warnings;    // "README.md:3:1: 'license' is a map, not text; ignored"
};

// Reads the front matter of a README.md; `path` is its name in messages. Unknown keys are ignored, values of a wrong
// kind are ignored with a warning. Returns an empty card if the text has no front matter. Front matter that is not YAML
// is an error with the code kBadInput.
Result<BaseCard> read_base_card(std::string_view text, const std::string& path);

}  // namespace ggufmill
