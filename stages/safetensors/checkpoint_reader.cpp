// Reads a checkpoint from one or more files.

#include <algorithm>
#include <set>

#include "pipeline/io/checkpoint_files.h"
#include "pipeline/io/gguf_files.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/source_path.h"
#include "stages/safetensors/header_reader.h"
#include "stages/safetensors/safetensors.h"

namespace ggufmill {
namespace safetensors {
namespace {

constexpr std::string_view kFile = ".safetensors";
constexpr std::string_view kIndex = ".safetensors.index.json";

Result<CheckpointPart> read_part(const std::shared_ptr<const ByteSource>& file) {
  BOOST_OUTCOME_TRY(Header header, read_header(*file));
  CheckpointPart part{{}, std::move(header.metadata)};
  for (HeaderTensor& tensor : header.tensors) {
    BOOST_OUTCOME_TRY(ExpressionRef values, expressions::extent(*tensor.type, shape_of_dimensions(tensor.dims),
                                                                {file->describe(), tensor.begin, tensor.bytes, false}));
    part.tensors.push_back({std::move(tensor.name), std::move(values), std::move(tensor.dims)});
  }
  return part;
}

Result<Checkpoint> read_folder(const fs::path& folder, const MissingFiles& missing) {
  const fs::path index = folder / ("model" + std::string(kIndex));
  if (is_file(index)) return read_indexed_checkpoint(index, read_part, missing);
  BOOST_OUTCOME_TRY(const std::vector<std::string> paths, paths_in(folder));
  std::set<std::string> of_model, others, indices;
  bool has_pickles = false;
  for (const fs::path path : paths) {
    const std::string name = path.filename();
    if (name.ends_with(kFile)) (name.starts_with("model") ? of_model : others).insert(path);
    if (name.ends_with(kIndex)) indices.insert(path);
    has_pickles |= name.ends_with(".bin") || name.ends_with(".pt") || name.ends_with(".pth");
  }
  if (of_model.empty() && indices.size() == 1) return read_indexed_checkpoint(*indices.begin(), read_part, missing);
  const std::set<std::string>& files = of_model.empty() ? others : of_model;
  if (files.empty() && holds_only_gguf(folder.string())) return not_a_checkpoint(folder.string());
  if (files.empty())
    return input_error(folder, "the folder contains no safetensors files",
                       has_pickles ? "PyTorch files pytorch_model*.bin are supported when `source: {huggingface: ...}` "
                                     "reads the checkpoint folder"
                                   : "give the folder of a checkpoint, or one of its files");
  const std::vector<std::string> all(files.begin(), files.end());
  BOOST_OUTCOME_TRY(std::vector<std::string> warnings, check_all_shards(all, missing));
  BOOST_OUTCOME_TRY(Checkpoint checkpoint, read_checkpoint_files(all, read_part));
  checkpoint.warnings = std::move(warnings);
  return checkpoint;
}

}  // namespace
}  // namespace safetensors

Result<Checkpoint> read_safetensors(const std::string& path, const MissingFiles& missing) {
  BOOST_OUTCOME_TRY(const std::string at, pinned(path));
  if (is_folder(at)) return safetensors::read_folder(at, missing);
  if (at.ends_with(safetensors::kIndex)) return read_indexed_checkpoint(at, safetensors::read_part, missing);
  return read_checkpoint_files({at}, safetensors::read_part);
}

}  // namespace ggufmill
