#pragma once
// Opens the files of a checkpoint.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "pipeline/core/checkpoint.h"
#include "pipeline/core/error.h"

namespace ggufmill::huggingface {

// The files of a checkpoint. Each is opened once, so that several models made from it share their sources.
class CheckpointFiles {
 public:
  // `missing`: about the files of the weights.
  explicit CheckpointFiles(const CheckpointOpener& open, MissingFiles missing = {})
      : open_(open), missing_(std::move(missing)) {}

  // Opens the weights in a folder. `name`: the beginning of the names of the weight files, or empty for any. Prefers
  // safetensors to PyTorch files.
  Result<Checkpoint> weights(const std::string& folder, const std::string& name);
  Result<Checkpoint> safetensors(const std::string& path);
  Result<SourceRef> other(const std::string& path);

 private:
  Result<std::optional<Checkpoint>> torch(const std::string& folder);

  const CheckpointOpener& open_;
  const MissingFiles missing_;
  std::map<std::string, Checkpoint> safetensors_;
  std::map<std::string, std::optional<Checkpoint>> torch_;
  std::map<std::string, SourceRef> others_;
};

// Returns true if the folder has a file whose name begins and ends like this.
Result<bool> has_file(const std::string& folder, std::string_view beginning, std::string_view ending);

}  // namespace ggufmill::huggingface
