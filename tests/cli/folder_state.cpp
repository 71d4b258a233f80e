#include "tests/cli/folder_state.h"

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <set>

#include "tests/support/files.h"

namespace ggufmill {

namespace {

constexpr std::uintmax_t kCompared = 1 << 20;  // bytes; of larger files only size and time are compared

std::string content_of(const std::filesystem::directory_entry& entry) {
  if (!entry.is_regular_file() || ::access(entry.path().c_str(), R_OK) != 0) return {};
  if (entry.file_size() <= kCompared) return read_text(entry.path());
  return std::to_string(entry.file_size()) + " " + std::to_string(entry.last_write_time().time_since_epoch().count());
}

}  // namespace

FolderState::FolderState(const std::string& folder) {
  namespace fs = std::filesystem;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = fs::relative(entry.path(), folder);
    if (entry.is_symlink())
      contents_[name] = "link to " + fs::read_symlink(entry.path()).string();
    else if (entry.is_directory())
      contents_[name + "/"];
    else
      contents_[name] = content_of(entry);
  }
}

std::string FolderState::changes_to(const FolderState& later) const {
  std::set<std::string> names;
  for (const auto& [name, bytes] : contents_) names.insert(name);
  for (const auto& [name, bytes] : later.contents_) names.insert(name);
  std::string text;
  for (const std::string& name : names) {
    const auto before = contents_.find(name), now = later.contents_.find(name);
    if (before == contents_.end())
      text += "+ " + name + "\n";
    else if (now == later.contents_.end())
      text += "- " + name + "\n";
    else if (before->second != now->second)
      text += "~ " + name + "\n";
  }
  return text;
}

}  // namespace ggufmill
