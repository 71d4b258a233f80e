#include "pipeline/io/checkpoint_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <map>
#include <set>
#include <unordered_map>

#include "pipeline/core/pattern.h"
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

// "2 of the 3 files that model.safetensors.index.json lists are missing: 'a', 'b'". `all`: from "3 files" on.
std::string missing_text(const std::vector<std::string>& names, const std::string& all) {
  return fmt::format("{} of the {} {} missing: {}", names.size(), all, names.size() == 1 ? "is" : "are",
                     list_some(names));
}

class FilesReader {
 public:
  FilesReader(const CheckpointPartReader& read, const MissingFiles& missing) : read_(read), missing_(missing) {}

  Status read_indexed(const fs::path& index) {
    BOOST_OUTCOME_TRY(const WeightMap weights, read_index(index));
    if (weights.empty())
      return input_error(index, "the index lists no tensors",
                         "remove it if the weights are in one file, or copy it again from the original checkpoint");
    std::set<std::string_view> files;
    for (const auto& [name, file] : weights) files.insert(file);
    std::set<std::string, std::less<>> missing;
    for (const std::string_view file : files) {
      const fs::path path = index.parent_path() / file;
      if (is_file(path)) {
        BOOST_OUTCOME_TRY(read_file(path));
        continue;
      }
      if (!missing_.are_allowed) return with_way(missing_file(index, path, files), "it", missing_);
      missing.emplace(file);
    }
    if (missing.size() == files.size() && !files.empty())
      return missing_file(index, index.parent_path() / *files.begin(), files);
    if (!missing.empty())
      checkpoint_.warnings.push_back(
          missing_text({missing.begin(), missing.end()},
                       fmt::format("{} that {} lists", counted(files.size(), "file"), index.filename().string())));
    BOOST_OUTCOME_TRY(const auto opened, open_source(index));
    checkpoint_.files.push_back({opened->describe(), {}});
    return compare_names(index, weights, missing);
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
                           "remove the file that is out of date, or move it out of the folder");
      checkpoint_.tensors.push_back(std::move(tensor));
    }
    return ok();
  }

  Checkpoint release() { return std::move(checkpoint_); }

 private:
  // Names the files of the kind that are in the folder but not in the index: the weights may have been saved again.
  static Error missing_file(const fs::path& index, const fs::path& path, const std::set<std::string_view>& listed) {
    const std::string index_name = index.filename().string();
    std::vector<std::string> unused;
    if (const auto paths = paths_in(index.parent_path().string()))
      for (const fs::path other : paths.value())
        if (other.extension() == path.extension() && !listed.contains(other.filename().string()))
          unused.push_back(other.filename().string());
    if (unused.empty())
      return input_error(path, "the file is missing",
                         fmt::format("it is listed in {}: copy or download it", index_name));
    return input_error(path,
                       fmt::format("the file is missing; {} lists it, but not {}, which {} there", index_name,
                                   list_some(unused), unused.size() == 1 ? "is" : "are"),
                       fmt::format("copy or download it; if {} {} the model, the index is out of date: remove {}",
                                   list_some(unused), unused.size() == 1 ? "holds" : "hold", index_name));
  }

  Status compare_names(const fs::path& index, const WeightMap& weights,
                       const std::set<std::string, std::less<>>& without) {
    std::set<std::string_view> extra;
    for (const CheckpointTensor& tensor : checkpoint_.tensors)
      if (!weights.contains(tensor.name)) extra.insert(tensor.name);
    std::vector<const WeightMap::value_type*> missing;
    for (const auto& entry : weights)
      if (!file_of_.contains(entry.first) && !without.contains(entry.second)) missing.push_back(&entry);
    const auto are = [](std::size_t count) { return fmt::format("{} tensor{}", count, count == 1 ? " is" : "s are"); };
    if (!missing.empty()) {
      const std::string what = fmt::format("{} in the index but in no file; the first is {}, which should be in {}",
                                           are(missing.size()), quoted_name(missing[0]->first), missing[0]->second);
      if (!missing_.are_allowed)
        return with_way(input_error(index, what, "the checkpoint is incomplete: copy or download its files again"),
                        missing.size() == 1 ? "it" : "them", missing_);
      checkpoint_.warnings.push_back(fmt::format("{}: {}", index.filename().string(), what));
    }
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
  const MissingFiles& missing_;
  Checkpoint checkpoint_;
  std::unordered_map<std::string, std::size_t> file_of_;  // index of the file that contains a tensor, by tensor name
};

}  // namespace

Result<std::vector<std::string>> check_all_shards(const std::vector<std::string>& paths, const MissingFiles& missing) {
  static const Pattern pattern = Pattern::compile(R"((.+)-(\d{5})-of-(\d{5})(\.[a-z]+))").value();
  struct Shards {
    fs::path folder;
    std::string beginning, count, ending;
    std::set<int> numbers;
  };
  std::map<std::string, Shards> sets;
  std::vector<std::string> warnings;
  for (const fs::path path : paths) {
    BOOST_OUTCOME_TRY(const auto groups, pattern.match_whole(path.filename().string()));
    if (!groups) continue;
    const auto part = [&](std::size_t i) { return (*groups)[i].value_or(""); };
    Shards& shards = sets[part(0) + part(2) + part(3)];
    shards = {path.parent_path(), part(0), part(2), part(3), std::move(shards.numbers)};
    shards.numbers.insert(std::stoi(part(1)));
  }
  for (const auto& [key, shards] : sets) {
    const int count = std::stoi(shards.count);
    const auto name = [&named = shards](int number) {
      return fmt::format("{}-{:05}-of-{}{}", named.beginning, number, named.count, named.ending);
    };
    std::vector<std::string> without;
    for (int number = 1; number <= count; ++number) {
      if (shards.numbers.contains(number)) continue;
      if (!missing.are_allowed)
        return with_way(
            input_error(shards.folder / name(number), "the file is missing",
                        fmt::format("the folder holds {} of the {} files that their names count, such as {}: copy or "
                                    "download it",
                                    shards.numbers.size(), count, name(*shards.numbers.begin()))),
            "it", missing);
      without.push_back(name(number));
    }
    if (!without.empty())
      warnings.push_back(missing_text(
          without, fmt::format("{} that their names count", counted(static_cast<std::size_t>(count), "file"))));
  }
  return warnings;
}

Result<Checkpoint> read_checkpoint_files(const std::vector<std::string>& paths, const CheckpointPartReader& read) {
  const MissingFiles none;
  FilesReader reader(read, none);
  for (const std::string& path : paths) {
    BOOST_OUTCOME_TRY(reader.read_file(path));
  }
  return reader.release();
}

Result<Checkpoint> read_indexed_checkpoint(const std::string& index, const CheckpointPartReader& read,
                                           const MissingFiles& missing) {
  FilesReader reader(read, missing);
  BOOST_OUTCOME_TRY(reader.read_indexed(index));
  return reader.release();
}

Error with_way(Error error, std::string_view what, const MissingFiles& missing) {
  if (missing.way.empty()) return error;
  error.help = fmt::format("{}; to continue without {}, {}", error.help, what, missing.way);
  return error;
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
