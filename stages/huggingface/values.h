#pragma once
// Values that an architecture's map takes from config.json: a constant, a name, the first of several names, or a named
// function of other values. There is no expression language: what cannot be said by these is a function more here.

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <filesystem>
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

namespace ggufmill::huggingface {

class Facts;

struct ValueFunction {
  std::string_view name;
  std::size_t least;  // arguments
  std::size_t most;
  std::string_view doc;
  // Null stands for a value that is not there. The error has no place.
  Result<boost::json::value> (*apply)(std::span<const boost::json::value> arguments, const Facts& facts);
  // Of a list it is the list of what it is of every element; several lists are of one length.
  bool by_element = false;
};
std::span<const ValueFunction> value_functions();  // sorted by name

// In YAML: a number, true, false or a quoted text is itself; a bare word is a name; a list of names is the first that
// config.json has, be it null; a map of one key calls the function of that name, with a list of arguments or one.
struct ValueRule {
  enum class Kind { kConstant, kName, kFirstKey, kCall };
  Kind kind = Kind::kConstant;
  boost::json::value constant;
  std::vector<std::string> names;
  const ValueFunction* function = nullptr;
  std::vector<ValueRule> arguments;
  std::string place;  // "llama.yaml:12:7"
};
// Exit code 2, with the place.
Result<ValueRule> read_value_rule(const ConfigNode& node);

// What is known of a checkpoint before a tensor is looked at. Names are looked up among the map's own values, then
// among those that were set, then in config.json, where "a.b" is member b of a and "a.0" its first element. A value of
// the map that asks for its own name means that of config.json. Not thread-safe: it notes which files were asked.
class Facts {
 public:
  // `config` as in the file: members of text_config and the like are looked up as if they stood at its top. `values`
  // outlives this.
  Facts(std::filesystem::path folder, boost::json::object config, const std::map<std::string, ValueRule>& values);

  void set(std::string name, boost::json::value value);
  // As if config.json had it.
  void add_to_config(std::string_view key, boost::json::value value);
  // The checkpoint's tensors, for `has_tensor`, `layers_of`, `tensor_values` and `tensor_rows`. `read` gives the values
  // of a small one that is there, `rows` how many rows one has.
  using TensorReader = std::function<Result<std::vector<float>>(const std::string& name)>;
  using RowCounter = std::function<std::uint64_t(const std::string& name)>;
  void set_tensors(std::vector<std::string> names, TensorReader read, RowCounter rows);
  const std::vector<std::string>& tensors() const { return tensors_; }
  std::uint64_t rows_of_tensor(const std::string& name) const { return count_rows_(name); }
  Result<std::vector<float>> values_of_tensor(const std::string& name) const { return read_tensor_(name); }
  // The tokenizer's tokens, for `token_id`. `find` gives the id of one.
  using TokenFinder = std::function<std::optional<std::uint64_t>(std::string_view text)>;
  void set_tokens(TokenFinder find) { find_token_ = std::move(find); }
  std::optional<std::uint64_t> token(std::string_view text) const {
    return find_token_ ? find_token_(text) : std::nullopt;
  }
  const std::filesystem::path& folder() const { return folder_; }
  // The file of that name in the folder, nothing where there is none. It is among files_read() then.
  std::optional<std::filesystem::path> file(std::string_view name) const;
  const std::set<std::filesystem::path>& files_read() const { return files_read_; }
  const boost::json::object& config() const { return config_; }

  // Null where a name is not there; `missing`, where given, gets the names that were not.
  // `layer`: what the name `layer` stands for.
  Result<boost::json::value> evaluate(const ValueRule& rule, std::vector<std::string>* missing = nullptr,
                                      std::optional<std::uint32_t> layer = {}) const;
  // Whether the rule asks for a key by its name that config.json has with null.
  bool is_null_key(const ValueRule& rule) const;
  // As Python takes a value for true: not null, false, 0, "" or empty.
  Result<bool> holds(const ValueRule& rule) const;
  // Without a condition: true.
  Result<bool> holds(const std::optional<ValueRule>& when) const;
  // Exit code 4 where it is not there or is no whole number from 0 on. `what` is for the message.
  Result<std::uint64_t> count(const ValueRule& rule, std::string_view what) const;

 private:
  using Busy = std::set<std::string, std::less<>>;  // values of the map that are being looked up
  struct Search {
    std::vector<std::string>* missing;
    std::optional<std::uint32_t> layer;
    Busy busy;
    std::size_t steps = 0;  // rules that were evaluated
  };
  void read_rope();
  Result<boost::json::value> evaluate(const ValueRule& rule, Search& search) const;
  Result<boost::json::value> call(const ValueFunction& function, std::span<const boost::json::value> arguments) const;
  Result<boost::json::value> named(const std::string& name, Search& search) const;
  const boost::json::value* find(std::string_view name) const;

  std::filesystem::path folder_;
  boost::json::object config_;  // the text model's members at its top
  std::map<std::string, boost::json::value, std::less<>> set_;
  const std::map<std::string, ValueRule>& values_;
  std::vector<std::string> tensors_;
  TensorReader read_tensor_;
  RowCounter count_rows_;
  TokenFinder find_token_;
  mutable std::set<std::filesystem::path> files_read_;
};

// The keys of config.json under which the text model of a checkpoint of several models can stand.
std::span<const std::string_view> text_model_keys();

// The name under `architectures` that says what kind of model the checkpoint is, the text model's before that of the
// whole; empty where there is none.
std::string checkpoint_class(const boost::json::object& config);
// That of the whole model alone.
std::string whole_class(const boost::json::object& config);

bool is_true(const boost::json::value& value);
// As Python takes a value for a number: true and false are 1 and 0. Nothing where it is none, or beyond 64 bits.
std::optional<std::int64_t> whole_number(const boost::json::value& value);
std::optional<double> number_value(const boost::json::value& value);
// For messages: quoted and cut.
std::string shown(const boost::json::value& value);

}  // namespace ggufmill::huggingface
