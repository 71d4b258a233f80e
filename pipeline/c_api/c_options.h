#pragma once
// Options of the C interface: a JSON object whose members are read into variables.

#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/core/error.h"

namespace ggufmill::c {

using Strings = std::vector<std::string>;

// Collects all errors. Usage:
//   Options options(text);
//   options.read("overwrite", run.overwrite);
//   BOOST_OUTCOME_TRY(options.finish());
class Options {
 public:
  // `text` may be null: no options.
  explicit Options(const char* text);

  // Store the value of a member, if it exists: true or false, a number, a text, a list of texts, an object. `null` is
  // the same as no member.
  void read(const char* name, bool& into);
  void read(const char* name, std::string& into);
  void read(const char* name, Strings& into);
  void read(const char* name, boost::json::object& into);
  void read(const char* name, std::uint64_t& into, std::uint64_t most = UINT64_MAX);
  void read(const char* name, unsigned& into, std::uint64_t most = UINT32_MAX);
  template <class Value, class... Limit>
  void read(const char* name, std::optional<Value>& into, const Limit&... limit) {
    if (const boost::json::value* given = members_.if_contains(name); !given || given->is_null())
      return (void)take(name);
    read(name, into.emplace(), limit...);
  }
  // Stores the position of a text in a list of words.
  void read(const char* name, std::size_t& into, const Strings& words);

  // Fails with exit code 2 if the text is not an object, or has other members than those read, or values of other
  // kinds.
  Status finish();

 private:
  const boost::json::value* take(const char* name);
  void refuse(const char* name, const std::string& wanted);

  boost::json::object members_;
  Strings known_;
  Diagnostics errors_;
};

}  // namespace ggufmill::c
