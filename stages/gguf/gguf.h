#pragma once
// The GGUF format as a source and a sink.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "pipeline/config/registry.h"
#include "pipeline/core/stage.h"

namespace ggufmill {

// Reads the headers of a model: one file, or, when it says so (split.count), it and its further shards, which are found
// by name in the same folder. GGUF versions 1 to 3, little- and big-endian. Tensors are in the order of the files; the
// metadata is that of the first file, split.* included. Weights are not touched.
// `types` are those that tensors can have. Exit code 4 for what is malformed.
Result<Model> read_gguf(const std::string& path, const Types& types = {});
ModelOpener gguf_opener(Types types = {});

// Opens `path` with read_gguf(); for a shard set it is the first.
std::unique_ptr<Source> make_gguf_source(std::string path, Types types = {});
// `gguf: PATH`.
SourceSpec gguf_source(Types types = {});

namespace gguf {
// How tensors are shared out among files, and what the files say of it.
enum class ShardRule {
  kSplit,    // llama-gguf-split's: padding counts, no tensor is larger than a file, one file is named as a shard, too
  kConvert,  // convert_hf_to_gguf.py's: padding does not count, a larger tensor is alone, one file is no shard,
             // and without any tensor it ends with its metadata, not padded
};

struct SinkOptions {
  std::string path{};                            // {recipe} in it stands for the recipe's name
  std::optional<std::uint64_t> shard_size{};     // most bytes of tensor data in a file
  std::optional<std::uint64_t> shard_tensors{};  // most tensors in a file; at least 1
  bool as_source = false;                        // the shards that the source has; excludes the others
  bool merged = false;  // one file, with the keys of a shard that llama-gguf-split --merge leaves
  ShardRule shard_rule = ShardRule::kSplit;
  bool metadata_shard = false;  // the first file has the metadata and no tensor
  bool big_endian = false;
  Origin origin{};
  bool sharded() const { return shard_size || shard_tensors || as_source || metadata_shard; }
};
}  // namespace gguf

// Writes GGUF version 3, as the reference does: tensors one after another, each padded to the alignment, with the
// dimensions that they have, split.* keys only in shards.
Result<std::unique_ptr<Sink>> make_gguf_sink(gguf::SinkOptions options);
// `gguf: PATH`, or `gguf: {path: PATH, shard_size: 20G, shard_tensors: 100}` for several files.
SinkSpec gguf_sink();

}  // namespace ggufmill
