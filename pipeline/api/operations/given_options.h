#pragma once
// Values of options as a user gave them, on the command line or in JSON, and how they are read into a request.

#include <boost/json/object.hpp>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/api/operations/option_names.h"

namespace ggufmill {

class GivenOptions {
 public:
  // `names`: as the user writes the options, for errors.
  explicit GivenOptions(OptionNames names) : names_(std::move(names)) {}

  const OptionNames& names() const { return names_; }
  // Returns a copy, which refers to this: it must not outlive it.
  GivenOptions copy() const {
    GivenOptions other(names_);
    other.given_ = given_;
    return other;
  }

  // Add a value of an option, which must outlive this: a word of the command line, or JSON. A list gets one more item
  // for each word.
  void add_word(const OperationOption& option, const std::string& word);
  void add_json(const OperationOption& option, const boost::json::value& value);
  // Adds the value of a flag that has one.
  void add_flag_value(const OperationOption& option, const OptionFlag& flag, const std::string& word);
  // Adds the value that a flag stands for.
  void add_flag(const OperationOption& option, const OptionFlag& flag);

  // Checks all values and reads those of `options` into the struct that they are bound to. Fails with exit code 2 with
  // all errors.
  Status read(const std::vector<OperationOption>& options, const Types& types, void* into) const;

 private:
  struct Given {
    const OperationOption* option;
    ConfigNode node;
  };

  void add(const OperationOption& option, ConfigNode node);
  // Returns the text that errors show; `line` is the value as the user wrote it.
  ConfigText& shown(const OperationOption& option, std::string line);
  const Given* find(std::string_view name) const;
  bool replaces_words() const;  // an option is given with which no words are needed

  OptionNames names_;
  std::deque<ConfigText> texts_;
  std::deque<Given> given_;
};

// Adds the members of a JSON object. Fails with exit code 2 for members that are not options.
Status add_members(const boost::json::object& members, const std::vector<OperationOption>& options, GivenOptions& to);

// Reads the request of an operation, checked.
Result<std::shared_ptr<const void>> read_request(const OperationSpec& operation, const GivenOptions& given,
                                                 const Types& types);

}  // namespace ggufmill
