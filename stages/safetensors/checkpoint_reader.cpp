// Reads a checkpoint from one or more files.

#include <fmt/format.h>

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

// Other forms of weights, by the ends of their names, and how to make a checkpoint of them.
struct OtherForm {
  std::string_view ending, name, help;
};
constexpr std::string_view kSaveAgain = "load it with transformers and save it again (save_pretrained)";
constexpr OtherForm kOtherForms[] = {
    {".h5", "weights of TensorFlow", kSaveAgain},
    {".msgpack", "weights of Flax", kSaveAgain},
    {".onnx", "a model of ONNX", "take the checkpoint that it was exported from"},
    {".distcp", "a distributed checkpoint of torch", "merge its parts: `accelerate merge-weights FOLDER OUT`"},
    {".incomplete", "an unfinished download", "finish the download"},
};

// Returns what to do about a folder without safetensors files, from what it holds.
std::string help_for_no_weights(const std::vector<std::string>& paths) {
  const auto ends_with = [](const std::vector<std::string>& names, std::string_view ending) {
    return std::ranges::find_if(names, [&](const std::string& name) { return name.ends_with(ending); });
  };
  for (const std::string_view ending : {".bin", ".pt", ".pth"})
    if (ends_with(paths, ending) != paths.end())
      return "PyTorch files pytorch_model*.bin are supported when `source: {huggingface: ...}` reads the checkpoint "
             "folder";
  std::vector<std::string> all = paths;
  for (const std::string& path : paths)
    if (is_folder(path))
      if (const auto inside = paths_in(path)) all.insert(all.end(), inside.value().begin(), inside.value().end());
  if (const auto weights = ends_with(all, kFile); weights != all.end())
    return fmt::format("give the folder of the weights: {}", fs::path(*weights).parent_path().string());
  for (const OtherForm& form : kOtherForms)
    if (const auto found = ends_with(all, form.ending); found != all.end())
      return fmt::format("{} is {}: {}", *found, form.name, form.help);
  return "give the folder of a checkpoint, or one of its files";
}

Result<Checkpoint> read_folder(const fs::path& folder, const MissingFiles& missing) {
  const fs::path index = folder / ("model" + std::string(kIndex));
  if (is_file(index)) return read_indexed_checkpoint(index, read_part, missing);
  BOOST_OUTCOME_TRY(const std::vector<std::string> paths, paths_in(folder));
  std::set<std::string> of_model, others, indices;
  for (const fs::path path : paths) {
    const std::string name = path.filename();
    if (name.ends_with(kFile)) (name.starts_with("model") ? of_model : others).insert(path);
    if (name.ends_with(kIndex)) indices.insert(path);
  }
  if (of_model.empty() && indices.size() == 1) return read_indexed_checkpoint(*indices.begin(), read_part, missing);
  const std::set<std::string>& files = of_model.empty() ? others : of_model;
  if (files.empty() && holds_only_gguf(folder.string())) return not_a_checkpoint(folder.string());
  if (files.empty()) return input_error(folder, "the folder contains no safetensors files", help_for_no_weights(paths));
  const std::vector<std::string> all(files.begin(), files.end());
  auto warnings = check_all_shards(all, missing);
  if (!warnings) {
    Error error = std::move(warnings).error();
    const auto pickle = std::ranges::find_if(paths, [](const std::string& path) {
      return fs::path(path).filename().string().starts_with("pytorch_model") && path.ends_with(".bin");
    });
    if (pickle == paths.end()) return error;
    error.help += fmt::format("; {} is not read beside them: to convert it, remove the safetensors files",
                              fs::path(*pickle).filename().string());
    return error;
  }
  BOOST_OUTCOME_TRY(Checkpoint checkpoint, read_checkpoint_files(all, read_part));
  checkpoint.warnings = std::move(warnings).value();
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
