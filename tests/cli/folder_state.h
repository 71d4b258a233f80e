#pragma once
// What is in a folder, to tell what a command has made, removed or changed.

#include <map>
#include <string>

namespace ggufmill {

class FolderState {
 public:
  // Throws std::exception when the folder cannot be read.
  explicit FolderState(const std::string& folder);

  // "+ NAME" for what is only in `later`, "- NAME" for what is only here, "~ NAME" where the bytes differ (of large
  // files the size or time); a line each, sorted by name. Folders end with /.
  std::string changes_to(const FolderState& later) const;

 private:
  std::map<std::string, std::string> contents_;  // by path
};

}  // namespace ggufmill
