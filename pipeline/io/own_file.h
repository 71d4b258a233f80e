#pragma once
// Files that an earlier process left under a name that others can guess.

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "pipeline/core/error.h"
#include "pipeline/io/descriptor.h"

namespace ggufmill {

// The permissions that a file has while it may be resumed: nobody else may write to it. The umask takes its part of it.
inline constexpr mode_t kOwnMode = 0644;

// Why a file that is there is not this user's alone, for a message: "it belongs to user 1000". Empty: it is a regular
// file with one link that belongs to this user, and nobody else may write to it. In a folder that others may write to,
// any other file could be a trap: a link to a file of this user, or a file whose bytes somebody else will change.
std::string why_not_own(const struct stat& info);

// When the inode of a file last changed (ctime), in nanoseconds since 1970; 0: unknown. Nobody can set it back, so it
// shows bytes that were rewritten under the old time of modification. A new mode, owner, name, or link changes it, too,
// and a copy has its own: so it is no part of what identifies a source, and is compared under one path alone.
std::int64_t inode_time(const std::string& path);
inline constexpr std::string_view kInodeChanged =
    "its inode has changed (ctime): it was rewritten and its time set back, or its mode, owner, or links were changed";

// What was found under a name.
struct FoundFile {
  Descriptor file;      // opened, where it is this user's alone
  std::string strange;  // else why it is not; empty where nothing is there
};
// Opens `name` in the open folder `folder` (AT_FDCWD: of the current one) with the access mode `access`. Follows no
// link, changes nothing. Exit code 6 where the system fails; `path`: for messages.
Result<FoundFile> open_own(int folder, const std::string& name, int access, const std::string& path);

}  // namespace ggufmill
