#pragma once
// The metadata of a GGUF file changed where it is.

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "stages/metadata/metadata_stage.h"

namespace ggufmill {

struct EditOptions {
  MetadataOptions changes;
  std::string output{};    // a file to write the result to, which `path` is not; empty: the file itself is changed
  bool overwrite = false;  // replace `output` where it is there
  bool dry_run = false;    // write nothing
  const std::atomic<bool>* stop = nullptr;  // once it is set a copy ends with kInterrupted, and the file is as it was
};

struct Edited {
  bool in_place = false;          // the header alone is written; else the weights are copied
  bool restored = false;          // an earlier edit that did not end was taken back first
  std::uint64_t bytes = 0;        // of the file
  std::vector<std::string> keys;  // that changed, are new or are gone
  std::vector<std::string> warnings;
};

// Where an edit keeps the old header while it writes the new one, by the file's name, inode and size: a file that has
// taken its place since has another one. Exit code 4 where there is no such file.
Result<std::string> header_backup(const std::string& path);
// What is there then: the header and its checksum. A later edit refuses (exit code 4) what is damaged or may be
// somebody else's.
std::string header_copy(const std::string& header);

// What edits of a file that were killed have left beside it: a copy that was being written, as large as the model, and
// the header as it was. Looks, changes nothing; the next edit of the file removes them.
struct EditLeftover {
  std::string path;
  std::uint64_t bytes = 0;
};
std::vector<EditLeftover> edit_leftovers(const std::string& path);

// Where the new header takes the room of the old one, it alone is written: first a copy of the old one beside the file
// (header_backup()), which a later edit puts back when this one does not end. Else, and where the file has other names
// (hard links), a new file takes the place of the old one when it is whole; weights are copied by the kernel, and
// shared with the old file where the file system can do that. Tensors stay where they are in relation to each other. Of
// a model in shards the first has the metadata: its header can be changed in place alone. Exit code 2 for a symbolic
// link, for changes that do not fit the shards, and for values that are none or of another type than the key, where
// none is named; 4 for a file that is malformed; 75 while another edit of it is under way.
Result<Edited> edit_metadata(const std::string& path, const EditOptions& options);

}  // namespace ggufmill
