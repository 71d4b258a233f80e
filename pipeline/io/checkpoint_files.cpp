#include "pipeline/io/checkpoint_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <map>
#include <set>
#include <unordered_map>

#include "pipeline/core/text.h"
#include "pipeline/io/json_file.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/source_path.h"

namespace ggufmill {
namespace {

// Name of the file that contains each tensor, by tensor name.
using WeightMap = std::map<std::string, std::string, std::less<>>;

Result<WeightMap> read_index(const std::string& path) {
  BOOST_OUTCOME_TRY(const boost::json::value document, read_checkpoint_json(path));
  const boost::json::value* member = json_member(document, "weight_map");
  if (!member || !member->is_object())
    return input_error(path, "'weight_map' is missing from the index", "it must map each tensor to its file");
  WeightMap files;
  for (const auto& [key, value] : member->get_object()) {
    const std::string_view name(key.data(), key.size());
    const auto file = json_text(value);
    if (!file || !is_file_name(*file))
      return input_error(path,
                         fmt::format("the index places tensor {} in {}, which is not the name of a file next to it",
                                     quoted_name(name), file ? quoted_name(*file) : "a value that is not a string"));
    files.emplace(name, *file);
  }
  return files;
}

Status refuse_pointer(const ByteSource& file) {
  constexpr std::string_view kPointer = "version https://git-lfs";
  std::string start(std::min<std::uint64_t>(kPointer.size(), file.bytes()), '\0');
  BOOST_OUTCOME_TRY(file.read(0, std::as_writable_bytes(std::span(start))));
  if (start != kPointer) return ok();
  return input_error(file.path(), "this is a Git LFS pointer, not the file itself", "fetch the file: git lfs pull");
}

class FilesReader {
 public:
  explicit FilesReader(const CheckpointPartReader& read) : read_(read) {}

  Status read_indexed(const fs::path& index) {
    BOOST_OUTCOME_TRY(const WeightMap weights, read_index(index));
    std::set<std::string_view> files;
    for (const auto& [name, file] : weights) files.insert(file);
    for (const std::string_view file : files) {
      const fs::path path = index.parent_path() / file;
      if (!is_file(path))
        return input_error(path, "the file is missing",
                           fmt::format("it is listed in {}: copy or download it", index.filename().string()));
      BOOST_OUTCOME_TRY(read_file(path));
    }
    BOOST_OUTCOME_TRY(const auto opened, open_source(index));
    checkpoint_.files.push_back({opened->describe(), {}});
    return compare_names(index, weights);
  }

  Status read_file(const std::string& path) {
    BOOST_OUTCOME_TRY(const auto file, open_source(path));
    BOOST_OUTCOME_TRY(refuse_pointer(*file));
    BOOST_OUTCOME_TRY(CheckpointPart part, read_(file));
    if (part.tensors.size() > kMaxCheckpointTensors - checkpoint_.tensors.size()) return too_many_tensors(path);
    checkpoint_.files.push_back({file->describe(), std::move(part.metadata)});
    for (CheckpointTensor& tensor : part.tensors) {
      const auto [entry, is_new] = file_of_.emplace(tensor.name, checkpoint_.files.size() - 1);
      if (!is_new)
        return input_error(path,
                           fmt::format("tensor {} is also in {}", quoted_name(tensor.name),
                                       checkpoint_.files[entry->second].source->path),
                           "give the file or the index to use");
      checkpoint_.tensors.push_back(std::move(tensor));
    }
    return ok();
  }

  Checkpoint release() { return std::move(checkpoint_); }

 private:
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
                         fmt::format("{} in the index but in no file; the first is {}, which should be in {}",
                                     are(missing.size()), quoted_name(missing[0]->first), missing[0]->second),
                         "the checkpoint is incomplete: copy or download its files again");
    if (!extra.empty())
      return input_error(
          index,
          fmt::format(
              "{} in the files but not in the index; the first is {} in {}", are(extra.size()),
              quoted_name(*extra.begin()),
              fs::path(checkpoint_.files[file_of_.at(std::string(*extra.begin()))].source->path).filename().string()),
          "check that the files and the index belong together");
    return ok();
  }

  const CheckpointPartReader& read_;
  Checkpoint checkpoint_;
  std::unordered_map<std::string, std::size_t> file_of_;  // index of the file that contains a tensor, by tensor name
};

}  // namespace

Result<Checkpoint> read_checkpoint_files(const std::vector<std::string>& paths, const CheckpointPartReader& read) {
  FilesReader reader(read);
  for (const std::string& path : paths) {
    BOOST_OUTCOME_TRY(reader.read_file(path));
  }
  return reader.release();
}

Result<Checkpoint> read_indexed_checkpoint(const std::string& index, const CheckpointPartReader& read) {
  FilesReader reader(read);
  BOOST_OUTCOME_TRY(reader.read_indexed(index));
  return reader.release();
}

Error too_many_tensors(const std::string& path) {
  return input_error(path, fmt::format("more than {} tensors", kMaxCheckpointTensors),
                     "no checkpoint needs as many: check that this is the right file");
}

Shape shape_of_dimensions(const std::vector<std::uint64_t>& dims) {
  Shape shape;
  shape.rank = static_cast<std::uint32_t>(std::clamp<std::size_t>(dims.size(), 1, shape.dims.size()));
  for (std::size_t i = 0; i < dims.size(); ++i) shape.dims[std::min<std::size_t>(i, 3)] *= dims[dims.size() - 1 - i];
  return shape;
}

}  // namespace ggufmill
