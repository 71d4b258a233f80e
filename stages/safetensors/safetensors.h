#pragma once
// The safetensors format as source and sink.
//
// Structure of a file: 8 bytes with the length of the header; the header, a JSON object with dtype, shape and data
// position of each tensor; the data without gaps. A checkpoint in several files has an index that maps tensors to
// files. Source: documentation and library of the format, safetensors (Apache 2.0).

#include <memory>
#include <string>

#include "pipeline/config/registry.h"
#include "pipeline/core/checkpoint.h"
#include "pipeline/core/stage.h"

namespace ggufmill {

// Reads the headers of a checkpoint, but no weights. `path` is a file, an index (*.safetensors.index.json), or a
// folder. In a folder, the first of these is used: model.safetensors.index.json and the files it names;
// model*.safetensors; the only index; all *.safetensors. Types keep their names except F8_E8M0 and F4, which become
// bytes (U8; with two elements per byte, F4 rows are half as long).
// Fails with exit code 4 for malformed input: headers longer than 100 MB, unknown types, data that overlaps, leaves a
// gap or does not match the shape, duplicate names, and files or tensors that are in the index but not in the folder,
// or vice versa.
// `missing` allows files and tensors to be missing that the index lists, or that the names of the files count.
Result<Checkpoint> read_safetensors(const std::string& path, const MissingFiles& missing = {});

namespace safetensors {
struct SourceOptions {
  std::string path{};
  std::string architecture{};  // general.architecture; empty: no metadata at all
};
}  // namespace safetensors

// Returns a source for the tensors of a checkpoint, unchanged.
std::unique_ptr<Source> make_safetensors_source(safetensors::SourceOptions options);
// Returns the specification of `safetensors: PATH` or `safetensors: {path: PATH, architecture: NAME}`.
SourceSpec safetensors_source();

namespace safetensors {
struct SinkOptions {
  std::string path{};  // a folder; {recipe} is replaced by the recipe's name
  // Maximum bytes of tensor data in a file; a larger tensor gets its own file.
  std::uint64_t shard_size = 5'000'000'000;
  const TypeInfo* type = nullptr;  // F32, F16 or BF16: output type of floats and quantized tensors; null: unchanged
  bool original_names = false;     // restore the tensor names of a checkpoint; needs `restore`
  // config.json of that checkpoint, or its folder; empty: that of the source, or made from metadata.
  std::string config{};
  std::string architecture{};  // if config.json does not identify it: name of a map, or a file
  CheckpointRestorer restore{};
  Origin origin{}, config_origin{}, architecture_origin{};
};
}  // namespace safetensors

// Returns a sink that writes tensors without metadata, with their own names or those of a checkpoint:
// model.safetensors, or several files and their index. Within a file, tensors with larger elements come first;
// otherwise the order is that of the model. Fails with exit code 2 for types that the format does not support.
Result<std::unique_ptr<Sink>> make_safetensors_sink(safetensors::SinkOptions options);
// Returns the specification of `safetensors: FOLDER` or
//   safetensors: {path: FOLDER, shard_size: 5G, dtype: keep | f32 | f16 | bf16, names: gguf | huggingface,
//                 config: FILE, architecture: NAME}
SinkSpec safetensors_sink(CheckpointRestorer restore);

}  // namespace ggufmill
