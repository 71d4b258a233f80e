#pragma once
// The arguments of `ggufmill quantize`, which are those of llama-quantize, and the pipeline file they stand for.

#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/core/error.h"

namespace ggufmill {

struct QuantizedOutput {
  std::string path, recipe;
};

struct QuantizeOptions {
  std::string input;                     // a GGUF, the first of its shards, or a checkpoint folder
  std::vector<QuantizedOutput> outputs;  // at least one; one read serves all of them
  std::optional<unsigned> threads;
  bool allow_requantize = false, leave_output_tensor = false, pure = false, keep_split = false, dry_run = false;
  std::optional<std::string> output_tensor_type, token_embedding_type;
  std::vector<std::string> tensor_types;  // "PATTERN=TYPE", in the order given
  std::string imatrix;
  std::vector<std::string> include_weights, exclude_weights;  // parts of names
  std::string prune_layers;                                   // "6,7"
  std::vector<std::string> override_kv;                       // "KEY=TYPE:VALUE"
};

// All of `word` as a decimal number, or nothing.
template <class T>
std::optional<T> whole_number(const std::string& word) {
  T number{};
  const char* end = word.data() + word.size();
  if (std::from_chars(word.data(), end, number) != std::from_chars_result{end, std::errc()}) return {};
  return number;
}

// INPUT [OUTPUT] TYPE[,TYPE...] [THREADS]: TYPE is a recipe by name, alias or file type number, in any letter case.
// Without OUTPUT it is ggml-model-TYPE.gguf beside the input, as the reference names it; for several types, for a
// checkpoint and where OUTPUT is a folder it is MODEL-TYPE.gguf. What is taken in another way than it is written is
// added to `warnings`; pipeline/api/llama-quantize.md lists what and why.
Status read_words(const std::vector<std::string>& words, QuantizeOptions& options, std::vector<std::string>& warnings);

// "PATTERN=TYPE" of each word of a file, separated by white space.
Result<std::vector<std::string>> read_tensor_type_file(const std::string& path);

// The built-in recipe that a word of the command line names, by name or alias in any letter case; empty: none.
std::string recipe_of_word(const std::string& word);

// The pipeline file. Opens the importance file, whose size and origin it records as the reference does, and the input
// where layers are pruned. Warnings as with read_words().
Result<std::string> pipeline_of(const QuantizeOptions& options, std::vector<std::string>& warnings);

}  // namespace ggufmill
