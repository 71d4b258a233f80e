#pragma once
// Field tables: the permitted contents of a mapping in a pipeline file. The lint, the JSON Schema, `--help` and the
// reference page are all derived from the same table.

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "pipeline/config/config_node.h"
#include "pipeline/core/pattern.h"
#include "pipeline/core/types.h"

namespace ggufmill {

enum class FieldKind {
  kString,
  kPath,
  kBool,
  kInteger,  // decimal; not negative unless `minimum` is
  kNumber,
  kBytes,        // "512MiB", "20G", "1000000": decimal K M G T, binary KiB MiB GiB TiB
  kRegex,        // Boost.Regex, Perl syntax; compiled by the lint
  kTypeName,     // name of a tensor type, or one of `choices`
  kEncoderName,  // name of an encoder
  kEnum,         // one of `choices`
  kAny,          // any value; checked by the stage
  kList,         // items are `item`
  kMap,          // exactly `fields`
  kDictionary,   // any keys; each value is an `item`
  kOneOf,        // one of `alternatives`: one whose node kind (scalar, list, map) matches and whose lint passes
};

// A key that an earlier version accepted, and what to do now, for the error.
struct FormerKey {
  std::string name{};
  std::string help{};
};

// Every member has an initializer, so that tables can set only the members they need: {.name = "x", .doc = "..."}.
struct FieldSpec {
  std::string name{};  // key in the mapping; empty for an item or an alternative
  FieldKind kind = FieldKind::kString;
  std::string doc{};  // one sentence
  bool required = false;
  std::string default_text{};             // as a user would write it; empty: none
  std::string example{};                  // YAML flow text that passes the lint
  std::vector<std::string> choices{};     // kEnum; kTypeName: words accepted in addition to types
  std::vector<FieldSpec> fields{};        // kMap
  std::vector<FieldSpec> item{};          // kList, kDictionary: exactly one
  std::vector<FieldSpec> alternatives{};  // kOneOf
  std::vector<FormerKey> former{};        // kMap: keys of earlier versions
  double minimum = 0;                     // kInteger, kNumber, kBytes; kList: minimum number of items
  double maximum = std::numeric_limits<double>::infinity();  // kInteger, kNumber, kBytes
  // Arguments of a program that the user names. They may contain anything of the machine, and are not published.
  bool is_for_program = false;
  std::string group{};  // exactly one of a kMap's fields with the same group must be present
  // An additional check: returns the problem in one line, or an empty string if there is none. May be empty.
  std::function<std::string(const ConfigNode&)> check{};
};

// Adds every violation of `spec` in `node` to `out`: unknown and missing keys, and wrong kinds and values. Duplicate
// keys are detected earlier, when the text is read. `types` are the accepted tensor types. Stops after kMaxErrors.
// Returns the nodes that have an error or contain one, or all if it stopped: the others can be read. Pure; thread-safe
// if each thread has its own `out`.
using FaultyNodes = std::unordered_set<const ConfigNode*>;
FaultyNodes lint(const ConfigNode& node, const FieldSpec& spec, Diagnostics& out, const Types& types = {});
constexpr std::size_t kMaxErrors = 100;

// Returns the problem with scalar `node` as a value of `spec`, which must not be of a container kind; nullopt if there
// is none. Part of lint().
std::optional<Error> lint_scalar(const ConfigNode& node, const FieldSpec& spec, const Types& types);

// Returns true if values of `spec` can have the kind of `node`: a scalar, a list, or a map.
bool accepts_kind_of(const ConfigNode& node, const FieldSpec& spec);

// Describes the values of this field for messages and help: "a path", "one of 'a', 'b'", "a whole number from 1 to
// 1024".
std::string describe_value(const FieldSpec& spec);

// Typed access to linted nodes. Returns an error with the node's position if its form is wrong.
Result<bool> to_bool(const ConfigNode& node);
Result<std::int64_t> to_integer(const ConfigNode& node);
Result<double> to_number(const ConfigNode& node);
Result<std::uint64_t> to_bytes(const ConfigNode& node);
Result<Pattern> to_pattern(const ConfigNode& node);  // the error's caret marks the offending character

}  // namespace ggufmill
