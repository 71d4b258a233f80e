#pragma once
// Editing the metadata and the list of tensors of a GGUF file, in place where possible.

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/api/change_tensors.h"
#include "pipeline/core/model.h"
#include "pipeline/core/types.h"
#include "stages/metadata/metadata_stage.h"

namespace ggufmill {

// The metadata that a file takes over from another of the same model.
struct LikeOptions {
  std::string path;             // the other file; its header may also be at an address
  bool with_tokenizer = false;  // copy the tokenizer even if its tokens are others
};

struct EditOptions {
  std::optional<LikeOptions> like{};  // applied before `changes`
  // Changes to keys; a renaming can also be that of a tensor.
  MetadataOptions changes;
  std::vector<std::string> drop{};  // patterns of tensors
  std::vector<TakenTensor> take{};
  std::string output{};                     // file to write the result to instead of `path`; empty: edit `path` itself
  bool overwrite = false;                   // replace an existing `output`
  bool dry_run = false;                     // write nothing
  Types types{};                            // those that the file may have
  const std::atomic<bool>* stop = nullptr;  // when set, a copy ends with kInterrupted; the file stays unchanged
};

// Returns the changes that give `model`, which was read from `path`, the values of another model:
// - general.*, but what describes the file itself: architecture, type, alignment, file_type, quantization_version,
//   quantized_by, and tensor_extra.*;
// - ARCHITECTURE.*, but the keys on which names and shapes of tensors depend (sizing_keys()), lists with an item per
//   layer if the models have different numbers of layers, and tensor_data_layout;
// - tokenizer.*, including chat templates, if both have the same tokens, or `model` has none and the other has one for
//   each row of the embedding; with `with_tokenizer`, also if the tokens are others, and then keys that the other does
//   not have are removed.
// Keys that the other file does not have are otherwise kept. `warnings` gets a line if sizes or tokens differ. Fails
// with exit code 2 if the architecture or the type is another one, or the tokenizer cannot fit; 4 for a malformed file.
Result<MetadataOptions> changes_like(const std::string& path, const Model& model, const LikeOptions& options,
                                     const Types& types, std::vector<std::string>& warnings);

// The form of a text with a '=', as errors show it.
struct AssignmentShape {
  const char* words;    // "KEY=VALUE"
  const char* example;  // "general.license=mit"
};

// Splits a text at the first '='. Fails with exit code 2, naming `option`, if there is no key.
Result<std::pair<std::string, std::string>> split_assignment(const std::string& text, const std::string& option,
                                                             const AssignmentShape& shape);
// Returns the setting for a key, given as "KEY" or "KEY:TYPE", and a value, or a file that contains the value.
Result<MetadataSetting> parse_setting(const std::string& key, const std::string& value);
Result<MetadataSetting> setting_of(const std::string& key, WrittenValue written);
Result<MetadataSetting> file_setting(const std::string& key, const std::string& path);

// A key that an edit changes. A key without a value before is added, one without a value after is removed.
struct MetadataChange {
  std::string key;
  std::string new_key{};  // if the edit renames the key
  std::optional<MetadataValue> before{}, after{};
};

// Returns a line about a change, with values cut to a few words: "changes KEY: 512 -> 8192 (uint32)".
std::string describe(const MetadataChange& change);

struct Edited {
  bool in_place = false;    // only the header was rewritten; false: the weights were copied
  bool restored = false;    // an earlier interrupted edit was undone first
  std::uint64_t bytes = 0;  // of the file
  std::vector<MetadataChange> changes;
  std::vector<TensorChange> tensors;
  std::vector<std::string> warnings;

  bool is_changed() const { return !changes.empty() || !tensors.empty(); }
};

// Returns the path of the file in which an edit keeps the old header while it writes the new one. It is derived from
// the file's name, inode and size, so a file that has since replaced this one has a different backup. Fails with exit
// code 4 if the file does not exist.
Result<std::string> header_backup(const std::string& path);
// Returns the content of the backup: the header and its checksum. A later edit refuses (exit code 4) a backup that is
// damaged or may belong to somebody else.
std::string header_copy(const std::string& header);

// Returns the files left next to `path` by killed edits: an unfinished copy, as large as the model, and the backup of
// the header. Changes nothing; the next edit of the file removes them.
struct EditLeftover {
  std::string path;
  std::uint64_t bytes = 0;
};
std::vector<EditLeftover> edit_leftovers(const std::string& path);

// Edits a GGUF file: first its metadata, then its tensors (change_tensors()). If the new header fits into the space of
// the old one and all tensors keep their positions, only the header is written.
// A backup of the old header is written next to the file first (header_backup()); if this edit is interrupted, the next
// one restores it. Otherwise, and if the file has several hard links, the edit writes a new file that replaces the old
// one once it is complete; the kernel copies the weights and shares them with the old file where the file system
// supports that. The tensors keep their order. The metadata of a sharded model is in the
// first shard, whose header can only be changed in place; its tensors cannot be changed. Fails with exit code 2 for a
// symbolic link, for changes that do not fit the shards or the model, and for values that do not fit the type of their
// key; 4 for a malformed file; 75 while another edit of the file is in progress.
Result<Edited> edit_metadata(const std::string& path, const EditOptions& options);

}  // namespace ggufmill
