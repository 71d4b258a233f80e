#include "tests/pipeline/memory_store.h"

#include <algorithm>
#include <cstring>

#include "pipeline/io/io_service.h"
#include "pipeline/io/output_target.h"

namespace ggufmill::testing {

class MemoryStore::Files final : public OutputStore {
 public:
  Files(const MemoryStore& store, std::vector<StoredFile> planned) : store_(store), planned_(std::move(planned)) {
    for (const StoredFile& file : planned_) bytes_.emplace_back(file.bytes, '\0');
  }

  Status write(std::size_t file, std::uint64_t offset, std::span<const std::byte> from) override {
    std::memcpy(bytes_[file].data() + offset, from.data(), from.size());
    return ok();
  }
  void start_write(IoService& io, std::size_t file, std::uint64_t offset, std::span<const std::byte> from,
                   Completion done) override {
    io.wait_for([this, file, offset, from] { return write(file, offset, from); }, std::move(done));
  }
  Status read(std::size_t file, std::uint64_t offset, std::span<std::byte> into) const override {
    std::memcpy(into.data(), bytes_[file].data() + offset, into.size());
    return ok();
  }
  Result<std::vector<FileId>> seal(std::span<const std::uint64_t>) override {
    std::vector<FileId> ids;
    for (std::size_t i = 0; i < planned_.size(); ++i) {
      std::ranges::copy(planned_[i].header, bytes_[i].begin());
      ids.push_back({0, i});
    }
    return ids;
  }
  Status publish() override {
    const std::scoped_lock lock(store_.mutex_);
    for (std::size_t i = 0; i < planned_.size(); ++i) store_.files_[planned_[i].path] = std::move(bytes_[i]);
    return ok();
  }
  void keep() override {}
  Status leave() override { return ok(); }

 private:
  const MemoryStore& store_;
  const std::vector<StoredFile> planned_;
  std::vector<std::string> bytes_;
};

Result<std::unique_ptr<OutputStore>> MemoryStore::create(std::vector<StoredFile> files,
                                                         const StoreOptions& options) const {
  for (const StoredFile& file : files) {
    BOOST_OUTCOME_TRY(check_target(file.path, options.overwrite));
  }
  return std::unique_ptr<OutputStore>(std::make_unique<Files>(*this, std::move(files)));
}

Status MemoryStore::check_target(const std::string& path, bool overwrite) const {
  const std::scoped_lock lock(mutex_);
  if (files_.contains(path) && !overwrite) return target_exists(path);
  return ok();
}

std::map<std::string, std::string> MemoryStore::files() const {
  const std::scoped_lock lock(mutex_);
  return files_;
}

}  // namespace ggufmill::testing
