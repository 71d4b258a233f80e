#pragma once
// An output store in memory, for paths that begin with memory://. It shows what a new kind of store takes: this file
// and one row of store_schemes().

#include <map>
#include <mutex>
#include <string>

#include "pipeline/io/store_scheme.h"

namespace ggufmill::testing {

class MemoryStore final : public StoreScheme {
 public:
  std::string_view name() const override { return "memory"; }
  Result<std::unique_ptr<OutputStore>> create(std::vector<StoredFile> files,
                                              const StoreOptions& options) const override;
  Status check_target(const std::string& path, bool overwrite) const override;

  // Returns the published files, by path.
  std::map<std::string, std::string> files() const;

 private:
  class Files;
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::string> files_;
};

}  // namespace ggufmill::testing
