#pragma once
// Values that an architecture's map takes from config.json: a constant, a name, the first of several names, or a named
// function of other values. There is deliberately no expression language: anything else needs a new function here.

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/config/config_node.h"
#include "pipeline/core/error.h"
#include "pipeline/core/lifetime.h"
#include "pipeline/io/platform/filesystem.h"

namespace ggufmill::huggingface {

class Facts;

struct ValueFunction {
  std::string_view name;
  std::size_t least;  // minimum number of arguments
  std::size_t most;
  std::string_view doc;
  // Null represents a missing value. Errors carry no place.
  Result<boost::json::value> (*apply)(std::span<const boost::json::value> arguments, const Facts& facts);
  // Applied to a list, the function is applied to every element; several lists must have the same length.
  bool by_element = false;
};
std::span<const ValueFunction> value_functions();  // sorted by name

// In YAML: a number, true, false or a quoted text is a constant; an unquoted word is a name; a list of names is the
// first one that exists in config.json, even if it is null; a map with one key calls the function of that name with a
// list of arguments or a single one.
struct ValueRule {
  enum class Kind { kConstant, kName, kFirstKey, kCall };
  Kind kind = Kind::kConstant;
  boost::json::value constant;
  std::vector<std::string> names;
  const ValueFunction* function = nullptr;
  std::vector<ValueRule> arguments;
  std::string place;  // "llama.yaml:12:7"
};
// Reads a value rule. Exit code 2, with the place.
Result<ValueRule> read_value_rule(const ConfigNode& node);

// A count that is the same in every layer, or differs.
struct CountByLayer {
  std::vector<std::uint64_t> counts{0};  // one for all layers, or one for each
  std::uint64_t in(std::optional<std::uint32_t> layer) const {
    const std::size_t index = counts.size() == 1 ? 0 : layer.value_or(0);
    return index < counts.size() ? counts[index] : 0;
  }
};

// Facts about a checkpoint that are known before a tensor is read. Names are looked up in the map's own values, then
// in the values that were set, then in config.json, where "a.b" is member b of a and "a.0" its first element. A value
// of the map that refers to its own name gets the value in config.json. Not thread-safe: records which files were
// accessed.
class Facts {
 public:
  // `config` is the file's content: members of text_config and similar keys, and the encoders' configurations in
  // thinker_config, are looked up as if they were at its top level. `values` must outlive this object.
  Facts(fs::path folder, boost::json::object config,
        GGUFMILL_OUTLIVES_RESULT const std::map<std::string, ValueRule>& values);

  void set(std::string name, boost::json::value value);
  // The same for the members of another file than config.json, which errors name.
  void set(std::string name, boost::json::value value, fs::path file);
  // Adds a key as if config.json contained it.
  void add_to_config(std::string_view key, boost::json::value value);
  // Sets the checkpoint's tensors, for `has_tensor`, `layers_of`, `tensor_values`, `tensor_integers`, `tensor_rows`,
  // `tensor_columns` and `zero_rows`. `read` returns the values of a small tensor that exists, or of one of its rows;
  // `rows` and `columns` return the number of rows of a tensor, and of values in each of them; `integers` returns the
  // values of a small I64 tensor. Without the last two, their functions find no tensor.
  using TensorReader =
      std::function<Result<std::vector<float>>(const std::string& name, std::optional<std::uint64_t> row)>;
  using RowCounter = std::function<std::uint64_t(const std::string& name)>;
  using IntegerReader = std::function<Result<std::vector<std::int64_t>>(const std::string& name)>;
  void set_tensors(std::vector<std::string> names, TensorReader read, RowCounter rows, RowCounter columns = {},
                   IntegerReader integers = {});
  const std::vector<std::string>& tensors() const { return tensors_; }
  std::uint64_t rows_of_tensor(const std::string& name) const { return count_rows_(name); }
  Result<std::vector<float>> values_of_tensor(const std::string& name, std::optional<std::uint64_t> row = {}) const {
    return read_tensor_(name, row);
  }
  // 0 and an empty list if set_tensors() was not given a function for them.
  std::uint64_t columns_of_tensor(const std::string& name) const { return count_columns_ ? count_columns_(name) : 0; }
  Result<std::vector<std::int64_t>> integers_of_tensor(const std::string& name) const {
    return read_integers_ ? read_integers_(name) : std::vector<std::int64_t>();
  }
  // Sets the tokenizer's tokens, for `token_id`. `find` returns the id of a token.
  using TokenFinder = std::function<std::optional<std::uint64_t>(std::string_view text)>;
  void set_tokens(TokenFinder find) { find_token_ = std::move(find); }
  std::optional<std::uint64_t> token(std::string_view text) const {
    return find_token_ ? find_token_(text) : std::nullopt;
  }
  const fs::path& folder() const { return folder_; }
  // Returns the path of a file in the folder and records it in files_read(); nullopt if there is no such file.
  std::optional<fs::path> file(std::string_view name) const;
  const std::set<fs::path>& files_read() const { return files_read_; }
  const boost::json::object& config() const { return config_; }
  // Returns true if a rule that was evaluated asked for this key of config.json, or for the rotary embedding settings
  // that are made from it.
  bool was_read(const std::string& key) const;

  // Evaluates a rule; returns null if a name is missing. Adds the missing names to `missing`, if given.
  // `layer` is the value of the name `layer`.
  Result<boost::json::value> evaluate(const ValueRule& rule, std::vector<std::string>* missing = nullptr,
                                      std::optional<std::uint32_t> layer = {}) const;
  // Returns the file that gives a rule its value: that of the first of its names that was set with a file, otherwise
  // `config`, the path of config.json.
  fs::path file_behind(const ValueRule& rule, fs::path config) const;
  // Returns the error for names without a value. `config`: path of config.json; `use`: what is made from them, for
  // messages, or empty; `place`: of the rule in the map, for messages about values that are in no file.
  Error missing_values(std::vector<std::string> names, fs::path config, std::string use, std::string_view place) const;
  // The purpose of a value, for messages.
  struct Use {
    fs::path config;        // path of config.json
    std::string is;         // added where a key is named: "it is the number of layers"
    std::string otherwise;  // the message where the value is computed, so that no key has it
  };
  // Returns the error for a value of a rule, or an element of it, that is not `expected` ("an integer"): it names the
  // key that has it, and what stands there.
  Error wrong_value(const ValueRule& rule, const boost::json::value& value, std::string_view expected,
                    const Use& use) const;
  // Returns such an error in place of one of a function of numbers, if its cause is an argument that is a key's value.
  std::optional<Error> wrong_argument(std::span<const ValueRule> rules, std::span<const boost::json::value> values,
                                      const Error& error) const;
  // Returns true if the rule names a key that is null in config.json.
  bool is_null_key(const ValueRule& rule) const;
  // Returns true if Python treats the value as true: not null, false, 0, "" or empty.
  Result<bool> holds(const ValueRule& rule) const;
  // The same for an optional condition: true if there is none.
  Result<bool> holds(const std::optional<ValueRule>& when) const;
  // Returns the value as a count. Exit code 4 if it is missing or not a nonnegative integer. `what` is for the message.
  Result<std::uint64_t> count(const ValueRule& rule, std::string_view what) const;
  // The same for a value that may also be a list of counts, one for each layer.
  Result<CountByLayer> count_by_layer(const ValueRule& rule, std::string_view what) const;
  // Returns whether Python treats the elements of a list as true; empty if the value is missing. Exit code 4 if it is
  // not a list.
  Result<std::vector<bool>> flags(const ValueRule& rule) const;

 private:
  static constexpr std::size_t kDeepestValues = 64;
  using Busy = std::set<std::string, std::less<>>;  // values of the map that are being looked up
  struct KeyOfFile {
    std::string name;  // in config.json, or in another file of the folder
    boost::json::value value;
  };
  struct Search {
    std::vector<std::string>* missing;
    std::optional<std::uint32_t> layer;
    Busy busy;
    std::size_t steps = 0;   // rules evaluated so far
    std::size_t weight = 0;  // of the arguments passed to functions so far
  };
  void read_rope();
  Result<boost::json::value> evaluate(const ValueRule& rule, Search& search) const;
  Result<boost::json::value> call(const ValueFunction& function, std::span<const boost::json::value> arguments) const;
  Result<std::uint64_t> as_count(const boost::json::value& value, const ValueRule& rule, std::string_view what) const;
  Result<boost::json::value> named(const std::string& name, Search& search) const;
  const boost::json::value* find(std::string_view name) const;
  const fs::path* find_file(const ValueRule& rule, Busy& seen) const;
  // Appends the keys of files that a rule reads.
  void add_keys(const ValueRule& rule, Busy& seen, std::vector<KeyOfFile>& into) const;

  fs::path folder_;
  boost::json::object config_;  // with the text model's members at its top level
  std::map<std::string, boost::json::value, std::less<>> set_;
  std::map<std::string, fs::path, std::less<>> files_;  // from which values were set
  const std::map<std::string, ValueRule>& values_;
  std::vector<std::string> tensors_;
  TensorReader read_tensor_;
  RowCounter count_rows_, count_columns_;
  IntegerReader read_integers_;
  TokenFinder find_token_;
  mutable std::set<fs::path> files_read_;
  mutable std::set<std::string, std::less<>> names_read_;  // without members: "rope" for rope.factor
};

// Returns the keys of config.json under which the text model of a checkpoint of several models may be stored.
std::span<const std::string_view> text_model_keys();

// Returns the name in `architectures` that identifies the kind of model: the text model's if it has one, otherwise
// that of the whole model. Without `architectures`, a file with `ssm_cfg` names a Mamba class. Empty if there is none.
std::string checkpoint_class(const boost::json::object& config);
// Returns the class of the whole model only.
std::string whole_class(const boost::json::object& config);

}  // namespace ggufmill::huggingface
