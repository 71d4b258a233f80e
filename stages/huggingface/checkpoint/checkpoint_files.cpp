#include "stages/huggingface/checkpoint/checkpoint_files.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/source_path.h"
#include "stages/huggingface/checkpoint/torch_file.h"

namespace ggufmill::huggingface {
namespace {

template <class Value, class Open>
Result<Value> once(std::map<std::string, Value>& known, const std::string& path, const Open& open) {
  if (const auto found = known.find(path); found != known.end()) return found->second;
  BOOST_OUTCOME_TRY(Value value, open());
  return known.emplace(path, std::move(value)).first->second;
}

}  // namespace

Result<Checkpoint> CheckpointFiles::safetensors(const std::string& path) {
  return once(safetensors_, path, [&] { return open_(path, missing_); });
}

Result<std::optional<Checkpoint>> CheckpointFiles::torch(const std::string& folder) {
  return once(torch_, folder, [&] { return read_torch_checkpoint(folder, missing_); });
}

Result<SourceRef> CheckpointFiles::other(const std::string& path) {
  return once(others_, path, [&]() -> Result<SourceRef> {
    BOOST_OUTCOME_TRY(const auto opened, open_source(path));
    return opened->describe();
  });
}

Result<Checkpoint> CheckpointFiles::weights(const std::string& folder, const std::string& name) {
  BOOST_OUTCOME_TRY(const bool has_safetensors, has_file(folder, name.empty() ? "model" : name, ".safetensors"));
  // An index alone decides: the files that it lists may have any names.
  const fs::path index = fs::path(folder) / ((name.empty() ? "model" : name) + ".safetensors.index.json");
  if (!has_safetensors && !is_file(index)) {
    BOOST_OUTCOME_TRY(std::optional<Checkpoint> checkpoint, torch(folder));
    if (checkpoint) return std::move(*checkpoint);
  }
  if (name.empty()) return safetensors(folder);
  // The index, or the single file with this name.
  return safetensors((is_file(index) ? index : fs::path(folder) / (name + ".safetensors")).string());
}

Result<bool> has_file(const std::string& folder, std::string_view beginning, std::string_view ending) {
  BOOST_OUTCOME_TRY(const std::vector<std::string> paths, paths_in(folder));
  return std::ranges::any_of(paths, [&](const fs::path path) {
    const std::string name = path.filename();
    return name.starts_with(beginning) && name.ends_with(ending);
  });
}

}  // namespace ggufmill::huggingface
