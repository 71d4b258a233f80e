#include "pipeline/io/remote/list_bounds.h"

#include <fmt/format.h>

namespace ggufmill::remote {

Status ListBounds::add_page(std::size_t entries, const std::string& next) {
  const auto refused = [&](std::string why) {
    return Error{ExitCode::kIo, where_, std::move(why), "", "the server's list is not credible: check its address"};
  };
  entries_ += entries;
  if (entries_ > kMaxListEntries) return refused(fmt::format("the server lists more than {} entries", kMaxListEntries));
  if (next.empty()) return ok();
  if (entries == 0) return refused("the server's list continues after a page without entries");
  if (!pages_.insert(next).second) return refused("the server's list returns to an earlier page");
  if (pages_.size() >= kMaxListPages)
    return refused(fmt::format("the server's list has more than {} pages", kMaxListPages));
  return ok();
}

}  // namespace ggufmill::remote
