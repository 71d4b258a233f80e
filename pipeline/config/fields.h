#pragma once
// Field tables: what a mapping of a pipeline file may hold. One table gives the lint, the JSON Schema, `--help` and the
// reference page.

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/config/config_node.h"
#include "pipeline/core/pattern.h"
#include "pipeline/core/types.h"

namespace ggufmill {

enum class FieldKind {
  kString,
  kPath,
  kBool,
  kInteger,  // decimal, not negative unless `minimum` says so
  kNumber,
  kBytes,       // "512MiB", "20G", "1000000": decimal K M G T, binary KiB MiB GiB TiB
  kRegex,       // Boost.Regex, Perl syntax; compiled by the lint
  kTypeName,    // a tensor type by name, or one of `choices`
  kEnum,        // one of `choices`
  kAny,         // whatever; checked by the stage
  kList,        // of `item`
  kMap,         // exactly `fields`
  kDictionary,  // any keys; every value is an `item`
  kOneOf,       // an alternative: of those whose node kind (scalar, list, map) fits, one that passes its lint
};

// Every member has an initializer, so that tables can name just the ones they need: {.name = "x", .doc = "..."}.
struct FieldSpec {
  std::string name{};  // key in the mapping; empty for an item or an alternative
  FieldKind kind = FieldKind::kString;
  std::string doc{};  // one sentence
  bool required = false;
  std::string default_text{};             // as a user would write it; empty: none
  std::string example{};                  // YAML flow text that passes the lint
  std::vector<std::string> choices{};     // kEnum; kTypeName: words beside the types
  std::vector<FieldSpec> fields{};        // kMap
  std::vector<FieldSpec> item{};          // kList, kDictionary: exactly one
  std::vector<FieldSpec> alternatives{};  // kOneOf
  double minimum = 0;                     // kInteger, kNumber, kBytes; kList: the least number of items
  double maximum = std::numeric_limits<double>::infinity();  // kInteger, kNumber, kBytes
  std::string group{};  // of a kMap's fields that share a group, exactly one must be there
  // A check beyond the kind: returns what is wrong in one line, or an empty string. May be empty.
  std::function<std::string(const ConfigNode&)> check{};
};

// Adds every violation of `spec` in `node` to `out`: unknown and missing keys, wrong kinds and values (duplicate keys
// are found when the text is read). `types` are those that a type can be. Stops after kMostErrors. Pure; thread-safe
// with separate `out`s.
void lint(const ConfigNode& node, const FieldSpec& spec, Diagnostics& out, const Types& types = {});
constexpr std::size_t kMostErrors = 100;

// What is wrong with scalar `node` as a value of `spec`, whose kind is none of the containers: a part of lint().
std::optional<Error> lint_scalar(const ConfigNode& node, const FieldSpec& spec, const Types& types);

// What a value of this field is, for messages and help: "a path", "one of 'a', 'b'", "a whole number from 1 to 1024".
std::string value_words(const FieldSpec& spec);

// Typed access to linted nodes. A node of the wrong form gives an error with its position.
Result<bool> to_bool(const ConfigNode& node);
Result<std::int64_t> to_integer(const ConfigNode& node);
Result<double> to_number(const ConfigNode& node);
Result<std::uint64_t> to_bytes(const ConfigNode& node);
Result<Pattern> to_pattern(const ConfigNode& node);  // the error's caret is at the character that is wrong

}  // namespace ggufmill
