#pragma once
// The arguments of `ggufmill quantize`, which are those of llama-quantize, and the equivalent pipeline file.

#include <charconv>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/core/error.h"
#include "stages/prune/prune_stage.h"
#include "stages/quantize/recipe.h"

namespace ggufmill {

struct QuantizedOutput {
  std::string path, recipe;
};

struct QuantizeOptions {
  std::string input;  // a GGUF file, the first of its shards, a checkpoint folder, or a diffusion model's safetensors
  std::vector<QuantizedOutput> outputs;  // at least one; all are written in a single pass over the input
  std::optional<unsigned> threads;
  bool allow_requantize = false, leave_output_tensor = false, pure = false, keep_split = false;
  std::optional<std::string> output_tensor_type, token_embedding_type;
  std::vector<std::string> tensor_types;  // "PATTERN=TYPE", in the order given
  std::vector<std::string> custom_types;  // "PATTERN=TYPE,PATTERN=TYPE", in the order given: --custom-q of ik_llama.cpp
  // Only rearranges rows, of the tensors whose names match one of the patterns "PATTERN,PATTERN" if there are any.
  bool repack = false;
  std::vector<std::string> repack_patterns;
  std::string imatrix;
  std::string covariance;     // a covariance file, instead of an importance matrix
  bool hide_imatrix = false;  // records that there was an importance matrix, but not which
  std::string encoder;        // as in a pipeline file: "search"; empty: the reference
  std::vector<std::string> include_weights, exclude_weights;  // substrings of tensor names
  std::string prune_layers;                                   // "6,7"
  // Folders and files of maps to add to the built-in ones, for a checkpoint.
  std::vector<std::string> architectures;
  bool allow_missing = false;                  // accept a checkpoint with missing files or tensors
  std::vector<std::string> override_kv;        // "KEY=TYPE:VALUE"
  std::optional<std::string> max_buffer_size;  // in MiB; only checked: the memory of every job is bounded

  // The file that importance is read from; empty: none.
  const std::string& importance_file() const { return covariance.empty() ? imatrix : covariance; }
};

// Parses all of `word` as a decimal number; returns none if that fails.
template <class T>
std::optional<T> whole_number(const std::string& word) {
  T number{};
  const char* end = word.data() + word.size();
  if (std::from_chars(word.data(), end, number) != std::from_chars_result{end, std::errc()}) return {};
  return number;
}

// The words of a command line: INPUT [OUTPUT] TYPE[,TYPE...] [THREADS].
struct QuantizeWords {
  std::string input{}, type{}, output{}, threads{};  // the last two may be empty
};
// Finds out what each word is.
Result<QuantizeWords> arrange_words(const std::vector<std::string>& words);

// Reads the words into options. TYPE is the name, an alias or the file type number of a recipe; case
// is ignored. Without OUTPUT, the output is ggml-model-TYPE.gguf next to the input, as in the reference; for several
// types, for a checkpoint or a diffusion model, and if OUTPUT is a folder, it is MODEL-TYPE.gguf. Adds a warning for
// each argument that is interpreted differently than written; pipeline/llama_cpp/llama-quantize.md lists these cases
// and the reasons.
Status read_words(const QuantizeWords& words, QuantizeOptions& options, std::vector<std::string>& warnings);

// Returns true if `input` is read as the safetensors file of a diffusion model.
bool is_diffusion_file(const std::string& input);

// Reads a file of "PATTERN=TYPE" words separated by white space.
Result<std::vector<std::string>> read_tensor_type_file(const std::string& path);

// Returns the name of the built-in recipe with this name or alias, ignoring case; empty if there is none.
std::string recipe_of_word(const std::string& word);

// Returns the equivalent pipeline file. Opens the importance file, whose size and origin are recorded as in the
// reference, and the input if layers are pruned. Adds warnings as read_words() does. `catalog` supplies the
// recipes and the types that options can name.
Result<std::string> pipeline_of(const QuantizeOptions& options, std::vector<std::string>& warnings,
                                const RecipeCatalog& catalog = RecipeCatalog());

// Parts of that file: the metadata that the arguments set. The texts are empty if no metadata is set.

// Returns the output's `metadata:` in the reference's order, in which all of it follows the file type: overrides,
// importance, layer count after pruning. A key given twice has its last value, at its last position. `layers_left` is
// the layer count, if layers are pruned. Adds a warning for each value that is written differently than given.
// `keys_in_place`: for a recipe with this option. The text is then to stand before `quantize:`, so that the file type
// follows; keys that exist keep their positions, and numbers are signed, as in ik_llama.cpp's llama-quantize.
Result<std::string> metadata_text(const QuantizeOptions& options, const std::optional<LayerCount>& layers_left,
                                  bool keys_in_place, std::vector<std::string>& warnings);

// Returns, as an item of `stages:`, the overrides that influence the decisions of recipes. There the output's
// `quantize`, which runs before its `metadata:`, sees them.
Result<std::string> fact_text(const QuantizeOptions& options);

// Splits "LEFT=RIGHT"; both sides must be nonempty. `form` and `example` are for the error message.
Result<std::pair<std::string, std::string>> split_word(const std::string& word, const char* form, const char* example);

}  // namespace ggufmill
