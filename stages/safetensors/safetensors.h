#pragma once
// The safetensors format as a source and a sink.
//
// A file: 8 bytes with the length of the header, the header (a JSON object: for each tensor dtype, shape and the place
// of its data), the data without gaps. A checkpoint in several files has an index that says which tensor is where.
// Source: the format's description and its library, safetensors (Apache 2.0).

#include <memory>
#include <string>

#include "pipeline/config/registry.h"
#include "pipeline/core/checkpoint.h"
#include "pipeline/core/stage.h"

namespace ggufmill {

// Reads the headers of a checkpoint; weights are not touched. `path` is a file, an index (*.safetensors.index.json), or
// a folder, in which are looked for, in this order: model.safetensors.index.json and the files that it names;
// model*.safetensors; the only index; all *.safetensors. Types keep their names but for F8_E8M0 and F4, which are bytes
// (U8; two elements of F4 each, so that rows are half as long).
// Exit code 4 for what is malformed: headers longer than 100 MB, unknown types, data that overlaps, leaves a gap or
// does not fit the shape, names that are there twice, files and tensors that the index has and the folder has not, and
// the other way round.
Result<Checkpoint> read_safetensors(const std::string& path);

namespace safetensors {
struct SourceOptions {
  std::string path{};
  std::string architecture{};  // general.architecture; empty: no metadata at all
};
}  // namespace safetensors

// The tensors of a checkpoint as they are.
std::unique_ptr<Source> make_safetensors_source(safetensors::SourceOptions options);
// `safetensors: PATH`, or `safetensors: {path: PATH, architecture: NAME}`.
SourceSpec safetensors_source();

namespace safetensors {
struct SinkOptions {
  std::string path{};                        // a folder; {recipe} in it stands for the recipe's name
  std::uint64_t shard_size = 5'000'000'000;  // most bytes of tensor data in a file, but for a tensor that has more
  const TypeInfo* type = nullptr;  // F32, F16 or BF16: what floats and quantized tensors become; null: they stay
  bool original_names = false;     // tensors get the names back that they had in a checkpoint; needs `restore`
  // config.json of that checkpoint, or the folder with it; empty: the source's, which then is a checkpoint.
  std::string config{};
  std::string architecture{};  // of that checkpoint, where its config.json does not say it: a map's name, or a file
  CheckpointRestorer restore{};
  Origin origin{};
};
}  // namespace safetensors

// Writes the tensors, not the metadata, by their names or those of a checkpoint: model.safetensors, or several files
// and their index. In a file tensors of larger elements come first, else they are in the model's order. Exit code 2 for
// types that the format does not have.
std::unique_ptr<Sink> make_safetensors_sink(safetensors::SinkOptions options);
// `safetensors: FOLDER`, or `safetensors: {path: FOLDER, shard_size: 5G, dtype: keep | f32 | f16 | bf16, names: gguf |
// huggingface, config: FILE, architecture: NAME}`.
SinkSpec safetensors_sink(CheckpointRestorer restore);

}  // namespace ggufmill
