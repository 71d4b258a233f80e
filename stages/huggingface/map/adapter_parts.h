#pragma once
// Words by which the names of tensors show that PEFT added them to a model. Sources: peft/tuners and
// peft/utils/other.py of PEFT (Apache-2.0).

#include <string_view>

namespace ggufmill::huggingface {

// What PEFT adds to a model.
enum class Added {
  kAdapter,   // numbers by which an adapter changes a weight
  kReplaced,  // weights or rows that replace the model's
  kBelow,     // the model's own weights, below one of these two
  kPrompt,    // a trained prompt
};
struct AdapterPart {
  std::string_view word;  // one that ends in '_' is the beginning of several
  Added added;
  std::string_view is;  // for messages, except for kBelow
};

// Returns what a word of a name stands for; null for words that PEFT does not use. The result lives as long as the
// program.
const AdapterPart* adapter_part(std::string_view word);

}  // namespace ggufmill::huggingface
