#pragma once
// Limits of lists that a server sends in pages.

#include <cstddef>
#include <set>
#include <string>

#include "pipeline/core/error.h"

namespace ggufmill::remote {

// A repository of the hub has at most 100,000 files (its documentation, "Repository limitations and recommendations"),
// an upload to a bucket 10,000 parts, and a page of either up to 1000 entries.
inline constexpr std::size_t kMaxListPages = 100;
inline constexpr std::size_t kMaxListEntries = 100'000;

// Counts the pages of one list. Not thread-safe.
class ListBounds {
 public:
  // `where` is for errors.
  explicit ListBounds(std::string where) : where_(std::move(where)) {}
  // Counts a page with this many entries; `next` names the next page, empty if there is none. Exit code 6 if the list
  // exceeds a limit, returns to an earlier page, or continues after a page without entries.
  Status add_page(std::size_t entries, const std::string& next);

 private:
  std::string where_;
  std::set<std::string> pages_;
  std::size_t entries_ = 0;
};

}  // namespace ggufmill::remote
