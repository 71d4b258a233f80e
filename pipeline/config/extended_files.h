#pragma once
// The files that a file extends: `extends` of architectures, recipes, and whatever else can name a file to build on.
// Files may come from others, so what they name is bounded.

#include <cstddef>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pipeline/core/error.h"

namespace ggufmill {

// Follows the files of one resolution and reads each of them once, whatever the path by which it is reached: a local
// file is identified by its device and inode, anything else by its name. Not thread-safe.
//
//   BOOST_OUTCOME_TRY(const bool is_new, files.enter(name, asked));
//   if (!is_new) return ok();
//   ... read the text ...
//   BOOST_OUTCOME_TRY(files.count(text.size(), asked));
//   ... read the files that it extends, in the same way ...
//   files.leave();
class ExtendedFiles {
 public:
  static constexpr std::size_t kMaxDepth = 32;        // files in a chain
  static constexpr std::size_t kMaxFiles = 64;        // of a resolution
  static constexpr std::size_t kMaxBytes = 16 << 20;  // of all their texts

  // `kind` is what a file is, for messages: "recipe".
  explicit ExtendedFiles(std::string_view kind) : kind_(kind) {}

  // Enters the file `name`, which the file entered last extends; `asked` is the place that names it. Returns false if
  // the file has been read before: it is not entered. Exit code 2 if it extends itself, or beyond the limits.
  Result<bool> enter(const std::string& name, const Origin& asked);
  // Counts the text of the file entered last. Exit code 2 beyond the limit.
  Status count(std::size_t bytes, const Origin& asked);
  // Leaves the file entered last.
  void leave() { chain_.pop_back(); }

 private:
  struct File {
    std::string name, identity;
  };

  std::string kind_;
  std::vector<File> chain_;      // each extended by the one before it
  std::set<std::string> known_;  // identities
  std::size_t bytes_ = 0;
};

// What a file inherits, completed with its own contents: its own items come first or last, its own value replaces that
// which is inherited.
template <class T>
void put_first(std::vector<T>& inherited, std::vector<T> own) {
  inherited.insert(inherited.begin(), std::make_move_iterator(own.begin()), std::make_move_iterator(own.end()));
}
template <class T>
void put_last(std::vector<T>& inherited, std::vector<T> own) {
  inherited.insert(inherited.end(), std::make_move_iterator(own.begin()), std::make_move_iterator(own.end()));
}
template <class T, class Own>
void put_instead(T& inherited, std::optional<Own> own) {
  if (own) inherited = std::move(*own);
}
// An empty text is no value.
inline void put_instead(std::string& inherited, std::string own) {
  if (!own.empty()) inherited = std::move(own);
}
// Null is no value.
template <class T>
void put_instead(T*& inherited, T* own) {
  if (own) inherited = own;
}
// Values replace those that are inherited under the same keys of a map.
template <class Map, class Values>
void put_by_key(Map& inherited, Values own) {
  for (auto& [key, value] : own) inherited.insert_or_assign(key, std::move(value));
}

}  // namespace ggufmill
