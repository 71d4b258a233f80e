#pragma once
// The stage `metadata`: sets and removes keys.

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "pipeline/config/registry.h"
#include "pipeline/config/written_value.h"

namespace ggufmill {

// A file whose bytes, at most 1 GiB, are a string: a chat template. Read when the stage is applied.
struct ValueFile {
  std::string path;
  Origin origin{};
};

struct MetadataSetting {
  std::string key;
  std::variant<MetadataValue, WrittenValue, ValueFile> value;
};

struct MetadataOptions {
  std::vector<std::string> remove;                            // first; a key that is not there gives a warning
  std::vector<std::pair<std::string, std::string>> rename{};  // then: from, to; keeps place and value; as of `remove`
  std::vector<MetadataSetting> set;     // a key that is there keeps its place, a new one goes to the end
  std::vector<MetadataSetting> append;  // all go to the end
};

std::unique_ptr<Stage> make_metadata_stage(MetadataOptions options);
// `metadata: {set: {KEY: VALUE, ..}, append: {..}, remove: [KEY, ..], rename: {KEY: NEW}}`; VALUE as of WrittenValue,
// or {type: uint64, value: 5}, or {file: PATH}.
StageSpec metadata_stage();

}  // namespace ggufmill
