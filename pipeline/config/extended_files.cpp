#include "pipeline/config/extended_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/config/yaml_reader.h"
#include "pipeline/core/text.h"
#include "pipeline/io/platform/files.h"

namespace ggufmill {
namespace {

std::string identity_of(const std::string& name) {
  FileStatus status;
  if (!names_file(name) || !get_status(kCurrentFolder, name, Links::kFollow, status)) return name;
  return fmt::format("{}/{}", status.device, status.inode);
}

}  // namespace

Result<bool> ExtendedFiles::enter(const std::string& name, const Origin& asked) {
  std::string identity = identity_of(name);
  if (std::ranges::find(chain_, identity, &File::identity) != chain_.end())
    return error_at(asked, fmt::format("{} {} extends itself through {}", kind_, quoted_name(name),
                                       quoted_name(chain_.back().name)));
  if (chain_.size() == kMaxDepth)
    return error_at(asked,
                    fmt::format("the chain of extended {}s of {} is longer than {}", kind_,
                                quoted_name(chain_.front().name), kMaxDepth),
                    "merge several of them into one");
  if (!known_.insert(identity).second) return false;
  if (known_.size() > kMaxFiles)
    return error_at(asked,
                    fmt::format("{} {} extends more than {} files, directly or through others", kind_,
                                quoted_name(chain_.front().name), kMaxFiles),
                    "merge several of them into one");
  chain_.push_back({name, std::move(identity)});
  return true;
}

Status ExtendedFiles::count(std::size_t bytes, const Origin& asked) {
  bytes_ += bytes;
  if (bytes_ <= kMaxBytes) return ok();
  return error_at(asked,
                  fmt::format("{} {} and the files that it extends have more than {}", kind_,
                              quoted_name(chain_.front().name), human_bytes(kMaxBytes)),
                  "extend fewer or smaller files");
}

}  // namespace ggufmill
