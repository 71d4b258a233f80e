// A checkpoint from its file or files.

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <filesystem>
#include <map>
#include <set>
#include <unordered_map>

#include "pipeline/core/text.h"
#include "pipeline/io/json_file.h"
#include "stages/safetensors/header_reader.h"
#include "stages/safetensors/safetensors.h"

namespace ggufmill {
namespace safetensors {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFile = ".safetensors";
constexpr std::string_view kIndex = ".safetensors.index.json";

// Which file each tensor is in, by name.
using WeightMap = std::map<std::string, std::string, std::less<>>;

bool is_plain_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find_first_of(std::string_view("/\0", 2)) == name.npos;
}

Result<WeightMap> read_index(const std::string& path) {
  BOOST_OUTCOME_TRY(const boost::json::value document, read_checkpoint_json(path));
  const boost::json::value* member = json_member(document, "weight_map");
  if (!member || !member->is_object())
    return input_error(path, "the index has no 'weight_map'", "it says for each tensor which file it is in");
  WeightMap files;
  for (const auto& [key, value] : member->get_object()) {
    const std::string_view name(key.data(), key.size());
    const auto file = json_text(value);
    if (!file || !is_plain_name(*file))
      return input_error(path, fmt::format("the index has tensor {} in {}, which is not the name of a file beside it",
                                           quoted_name(name), file ? quoted_name(*file) : "what is no text"));
    files.emplace(name, *file);
  }
  return files;
}

Shape shape_of(const std::vector<std::uint64_t>& dims) {
  Shape shape;
  shape.rank = static_cast<std::uint32_t>(std::clamp<std::size_t>(dims.size(), 1, shape.dims.size()));
  for (std::size_t i = 0; i < dims.size(); ++i) shape.dims[std::min<std::size_t>(i, 3)] *= dims[dims.size() - 1 - i];
  return shape;
}

class CheckpointReader {
 public:
  Result<Checkpoint> read(const std::string& path) {
    if (is_folder(path)) {
      BOOST_OUTCOME_TRY(read_folder(path));
    } else if (path.ends_with(kIndex)) {
      BOOST_OUTCOME_TRY(read_indexed(path));
    } else {
      BOOST_OUTCOME_TRY(read_file(path));
    }
    return std::move(checkpoint_);
  }

 private:
  Status read_folder(const fs::path& folder) {
    const fs::path index = folder / fmt::format("model{}", kIndex);
    if (is_file(index)) return read_indexed(index);
    BOOST_OUTCOME_TRY(const std::vector<std::string> paths, paths_in(folder));
    std::set<std::string> of_model, others, indices;
    bool has_pickles = false;
    for (const fs::path path : paths) {
      const std::string name = path.filename();
      if (name.ends_with(kFile)) (name.starts_with("model") ? of_model : others).insert(name);
      if (name.ends_with(kIndex)) indices.insert(name);
      has_pickles |= name.ends_with(".bin") || name.ends_with(".pt") || name.ends_with(".pth");
    }
    if (of_model.empty() && indices.size() == 1) return read_indexed(folder / *indices.begin());
    const std::set<std::string>& names = of_model.empty() ? others : of_model;
    if (names.empty())
      return input_error(folder, "the folder has no safetensors file",
                         has_pickles ? "other files of PyTorch are not read: save the model as safetensors"
                                     : "give the folder of a checkpoint, or one of its files");
    for (const std::string& name : names) {
      BOOST_OUTCOME_TRY(read_file(folder / name));
    }
    return ok();
  }

  Status read_indexed(const fs::path& index) {
    BOOST_OUTCOME_TRY(const WeightMap weights, read_index(index));
    std::set<std::string_view> files;
    for (const auto& [name, file] : weights) files.insert(file);
    for (const std::string_view file : files) {
      const fs::path path = index.parent_path() / file;
      if (!is_file(path))
        return input_error(path, "the file is missing",
                           fmt::format("{} names it: copy or download it", index.filename().string()));
      BOOST_OUTCOME_TRY(read_file(path));
    }
    BOOST_OUTCOME_TRY(const auto opened, open_source(index));
    checkpoint_.files.push_back({opened->describe(), {}});
    return compare_names(index, weights);
  }

  Status compare_names(const fs::path& index, const WeightMap& weights) const {
    std::set<std::string_view> extra;
    for (const CheckpointTensor& tensor : checkpoint_.tensors)
      if (!weights.contains(tensor.name)) extra.insert(tensor.name);
    std::vector<const WeightMap::value_type*> missing;
    for (const auto& entry : weights)
      if (!file_of_.contains(entry.first)) missing.push_back(&entry);
    const auto are = [](std::size_t count) { return fmt::format("{} tensor{}", count, count == 1 ? " is" : "s are"); };
    if (!missing.empty())
      return input_error(index,
                         fmt::format("{} in the index and in no file, the first being {}, which should be in {}",
                                     are(missing.size()), quoted_name(missing[0]->first), missing[0]->second),
                         "the checkpoint is not complete: copy or download its files again");
    if (!extra.empty())
      return input_error(
          index,
          fmt::format(
              "{} in the files and not in the index, the first being {} in {}", are(extra.size()),
              quoted_name(*extra.begin()),
              fs::path(checkpoint_.files[file_of_.at(std::string(*extra.begin()))].source->path).filename().string()),
          "check that the files and the index belong together");
    return ok();
  }

  Status read_file(const std::string& path) {
    BOOST_OUTCOME_TRY(const auto file, open_source(path));
    BOOST_OUTCOME_TRY(Header header, read_header(*file));
    checkpoint_.files.push_back({file->describe(), std::move(header.metadata)});
    for (HeaderTensor& tensor : header.tensors) {
      const auto [entry, is_new] = file_of_.emplace(tensor.name, checkpoint_.files.size() - 1);
      if (!is_new)
        return input_error(path,
                           fmt::format("tensor {} is in {} too", quoted_name(tensor.name),
                                       checkpoint_.files[entry->second].source->path),
                           "give the one file, or the index, that is meant");
      BOOST_OUTCOME_TRY(ExpressionRef values,
                        expressions::extent(*tensor.type, shape_of(tensor.dims),
                                            {file->describe(), tensor.begin, tensor.bytes, false}));
      checkpoint_.tensors.push_back({std::move(tensor.name), std::move(values), std::move(tensor.dims)});
    }
    return ok();
  }

  Checkpoint checkpoint_;
  std::unordered_map<std::string, std::size_t> file_of_;  // which file has a tensor
};

}  // namespace
}  // namespace safetensors

Result<Checkpoint> read_safetensors(const std::string& path) {
  BOOST_OUTCOME_TRY(const std::string at, pinned(path));
  return safetensors::CheckpointReader().read(at);
}

}  // namespace ggufmill
