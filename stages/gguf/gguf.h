#pragma once
// The GGUF format as source and sink.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "pipeline/config/registry.h"
#include "pipeline/core/stage.h"

namespace ggufmill {

// Reads the headers of a model from one file or, if the file is the first of several shards (split.count), from all of
// them. `path` can be a folder with one model. The other shards are found by name in the same folder. Accepts GGUF
// versions 1 to 3, little- and big-endian. Tensors are in the order of the files. The metadata is that of the first
// file, including split.*. Does not read weights. `types` are the types that tensors can have. Fails with exit code 4
// for malformed input.
Result<Model> read_gguf(const std::string& path, const Types& types = {});
ModelOpener gguf_opener(Types types = {});

// Returns the metadata of the first file of a planned output; nullopt if it is no GGUF file. Reads the planned header,
// and no file.
std::optional<Metadata> planned_metadata(const std::vector<OutputFile>& files);

// Returns a warning about the tensors for which llama.cpp does not load the model: missing ones, wrong shapes,
// unknown ones, and layers beyond their number in the metadata. Empty if there are none, and for what is no model of
// its own: projectors, adapters, vocabularies, and architectures that pipeline/core/complete_model.h does not know.
// Tensors that a draft shares with its model may be missing. Reads metadata and shapes only.
std::string loading_warning(const Model& model);

// Returns a source that opens `path` with read_gguf(). For a sharded model, `path` is the first shard.
std::unique_ptr<Source> make_gguf_source(std::string path, Types types = {});
// Returns the specification of `gguf: PATH`.
SourceSpec gguf_source(Types types = {});

namespace gguf {
// Rules for distributing tensors among files, and for the split.* keys. With both, a tensor larger than shard_size gets
// a file of its own.
enum class ShardRule {
  kSplit,    // like llama-gguf-split: padding counts, and a single file is named as a shard
  kConvert,  // like convert_hf_to_gguf.py: padding does not count, a single file is not a shard, and without tensors
             // the file ends after the metadata, unpadded
};

// Other ways to split an output than by limits.
enum class Shards {
  kLimits,  // by shard_size and shard_tensors, if given
  kSource,  // as the source; excludes the other options
  kMerged,  // one file, with the shard keys that llama-gguf-split --merge leaves
};

struct SinkOptions {
  std::string path{};                            // {recipe} is replaced by the recipe's name
  std::optional<std::uint64_t> shard_size{};     // maximum bytes of tensor data in a file of several tensors
  std::optional<std::uint64_t> shard_tensors{};  // maximum number of tensors in a file; at least 1
  Shards shards = Shards::kLimits;
  ShardRule shard_rule = ShardRule::kSplit;
  bool metadata_shard = false;  // the first file contains only metadata
  bool big_endian = false;
  Origin origin{};
  bool sharded() const { return shard_size || shard_tensors || shards == Shards::kSource || metadata_shard; }
};
}  // namespace gguf

// Creates a sink that writes GGUF version 3 like the reference: tensors in order, each padded to the alignment, with
// all of their dimensions. Only shards get split.* keys.
Result<std::unique_ptr<Sink>> make_gguf_sink(gguf::SinkOptions options);
// Returns the specification of `gguf: PATH` or, for several files, `gguf: {path: PATH, shard_size: 20G, shard_tensors:
// 100}`.
SinkSpec gguf_sink();

}  // namespace ggufmill
