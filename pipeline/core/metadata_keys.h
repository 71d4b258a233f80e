#pragma once
// The types of the metadata keys that programs know. The table is configs/metadata_keys.tsv, which names its sources.

#include <string>
#include <string_view>

namespace ggufmill {

// Types are full names (full_type_name()), divided by commas: "uint32", "string[]", "uint32,int32[]".
struct KnownKey {
  std::string_view key;            // with placeholders: [arch] an architecture, [n] a number, [name] a word
  std::string_view types;          // types with which llama.cpp writes and reads the key
  std::string_view specification;  // types that the GGUF specification allows; empty if it does not have the key
};

// Returns the row of a key, or nullptr. A row that spells the key out precedes one with placeholders. Thread-safe.
const KnownKey* known_key(std::string_view key);

// Returns the type with which a new key is written: of the known types, the first one for a list, or for a single
// value; the first one if there is no such type. Empty if the key is not known.
std::string_view known_type(std::string_view key, bool is_list);

// Keys about the shards of a model. Writers of files set them; what other metadata says about them is ignored.
inline constexpr std::string_view kSplitNumberKey = "split.no";              // uint16, counting from 0
inline constexpr std::string_view kSplitCountKey = "split.count";            // uint16
inline constexpr std::string_view kSplitTensorsKey = "split.tensors.count";  // int32, total of all shards
inline bool is_split_key(std::string_view key) {
  return key == kSplitNumberKey || key == kSplitCountKey || key == kSplitTensorsKey;
}

// Returns true if `type` is one of `types`, which are divided by commas.
bool is_one_of(std::string_view type, std::string_view types);

}  // namespace ggufmill
