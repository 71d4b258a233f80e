#include "pipeline/io/output_folder.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

#include "pipeline/io/platform/files.h"
#include "pipeline/io/platform/filesystem.h"

namespace ggufmill {
namespace {

std::string or_current(const std::string& path) { return path.empty() ? "." : path; }

Descriptor open_folder(const std::string& path) { return open_file(kCurrentFolder, path, kOpenRead | kOpenFolder); }

// Makes the directory entry of a new folder durable, like that of a file.
Status sync_parent(const std::string& path) {
  const std::string parent = or_current(fs::path(path).parent_path());
  const Descriptor descriptor = open_folder(parent);
  if (!descriptor || sync_to_disk(descriptor.get()) < 0)
    return io_error(parent, "flush the folder to the disk (fsync)", errno);
  return ok();
}

// Folders that are not empty yet are retried in later calls: other outputs in them are removed later.
void remove_empty(const std::vector<std::string>& made) {
  static std::mutex mutex;
  static std::vector<std::string> waiting;
  const std::scoped_lock lock(mutex);
  waiting.insert(waiting.end(), made.begin(), made.end());
  // Longer paths first: they may lie inside shorter ones.
  std::stable_sort(waiting.begin(), waiting.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
  std::erase_if(waiting, [](const std::string& path) {
    const auto remove = [&] { return system_calls().remove_folder(kCurrentFolder, path.c_str()); };
    return retry(remove) == 0 || errno != ENOTEMPTY;
  });
}

}  // namespace

int sync_to_disk(int descriptor) {
  const int result = retry([&] { return system_calls().sync(descriptor); });
  return result < 0 && errno == EINVAL ? 0 : result;
}

Result<OutputFolder> OutputFolder::open(const std::string& path) {
  OutputFolder folder(or_current(path));
  folder.descriptor_ = open_folder(folder.path_);
  if (!folder.descriptor_ && errno == ENOENT) {
    BOOST_OUTCOME_TRY(folder.make(folder.path_));
    folder.descriptor_ = open_folder(folder.path_);
  }
  if (!folder.descriptor_) return io_error(folder.path_, "open the output's folder", errno);
  return folder;
}

Status OutputFolder::make(const std::string& path) {
  std::string made = path;
  auto attempt = [&] {
    made_.reserve(made_.size() + 1);  // so that every folder that is created is recorded
    return retry([&] { return system_calls().make_folder(kCurrentFolder, path.c_str(), 0777); });
  };
  int result = attempt();
  if (result < 0 && errno == ENOENT) {
    const std::string parent = fs::path(path).parent_path();
    if (parent.empty() || parent == path) return io_error(path, "create the output's folder", ENOENT);
    BOOST_OUTCOME_TRY(make(parent));
    result = attempt();
  }
  if (result < 0 && errno == EEXIST) return ok();
  if (result < 0) return io_error(path, "create the output's folder", errno);
  made_.push_back(std::move(made));
  return sync_parent(path);
}

Status OutputFolder::sync() const {
  if (sync_to_disk(descriptor()) < 0) return io_error(path_, "flush the folder to the disk (fsync)", errno);
  return ok();
}

OutputFolder::OutputFolder(OutputFolder&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::move(other.descriptor_)),
      made_(std::move(other.made_)),
      kept_(std::exchange(other.kept_, true)) {}

OutputFolder::~OutputFolder() {
  if (kept_) return;
  descriptor_ = Descriptor();  // some systems do not remove an open folder
  try {
    remove_empty(made_);
  } catch (const std::bad_alloc&) {  // the folders stay
  }
}

}  // namespace ggufmill
