#pragma once
// The stage `metadata`: sets, renames and removes keys.

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "pipeline/config/registry.h"
#include "pipeline/config/written_value.h"

namespace ggufmill {

// A file of at most 1 GiB that contains a value: the text of a string, such as a chat template, or a number, true,
// false, or a list as JSON or YAML, depending on the type of the key. It is read when the stage is applied.
struct ValueFile {
  std::string path;
  Origin origin{};
  std::string type{};  // of the value, as for value_of(); empty: that of the key
};

struct MetadataSetting {
  using Value = std::variant<MetadataValue, WrittenValue, ValueFile>;
  std::string key;
  Value value;
};

struct MetadataOptions {
  std::vector<std::string> remove{};  // applied first; a missing key gives a warning
  // Pairs (from, to), applied after `remove`. A key keeps its position and value; a missing key gives a warning.
  std::vector<std::pair<std::string, std::string>> rename{};
  std::vector<MetadataSetting> set{};     // existing keys keep their position, new ones go to the end
  std::vector<MetadataSetting> append{};  // all go to the end
  // Like `set`, but keys that are missing from the model are ignored.
  std::vector<MetadataSetting> replace{};
};

std::unique_ptr<Stage> make_metadata_stage(MetadataOptions options);
// Returns the specification of
//   metadata: {set: {KEY: VALUE, ..}, append: {..}, replace: {..}, remove: [KEY, ..], rename: {KEY: NEW}}
// VALUE is a WrittenValue, {type: uint64, value: 5}, or {file: PATH, type: 'string[]'}. Without a type, a value has the
// type that value_for() describes; that of a file whose key is neither present nor known is string. A warning is
// printed for a key whose type changes, and for a type that llama.cpp does not expect.
StageSpec metadata_stage();

}  // namespace ggufmill
