#pragma once
// Files that an earlier process left under a name that others can guess.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "pipeline/core/error.h"
#include "pipeline/io/platform/files.h"

namespace ggufmill {

// Permissions of a file that may be resumed: nobody else may write to it. The umask is applied to it.
inline constexpr unsigned kOwnMode = 0644;

// Returns why an existing file is not owned exclusively by this user, as text for a message: "it belongs to user 1000".
// Empty if it is: a regular file with one link that belongs to this user and that nobody else may write to. In a folder
// that others may write to, any other file could be a trap: a link to one of this user's files, or a file whose bytes
// somebody else will change.
std::string why_not_own(const FileStatus& info);
// Returns true if `path` is such a file. Does not follow links.
bool is_own_file(const std::string& path);

// Creates a folder that only this user may enter (mode 0700), under the name `start` followed by random letters, so
// that nobody can plant anything there. Returns its path. Exit code 6.
Result<std::string> make_private_folder(const std::string& start);
// Returns `count` random letters and digits, for a name that nobody can guess. No two of them differ in case only.
std::string random_letters(std::size_t count);

// Returns the time at which the inode of a file last changed (ctime), in nanoseconds since 1970; 0 if unknown. It
// cannot be set back, so it reveals bytes that were rewritten under the old modification time. Changing the mode,
// owner, name, or links of a file also changes it, and a copy has its own ctime. It is therefore not part of the
// identity of a source, and is compared only for the same path.
std::int64_t inode_time(const std::string& path);
inline constexpr std::string_view kInodeChanged =
    "its inode has changed (ctime): it was rewritten and its modification time reset, or its mode, owner, or links "
    "were changed";

// Returns true if a process has locked the file for writing.
bool is_locked(const std::string& path);

// Result of looking up a name.
struct FoundFile {
  Descriptor file;      // open if it is owned exclusively by this user
  std::string strange;  // otherwise the reason why it is not; empty if nothing exists there
};
// Opens `name` in the open folder `folder` with `access` (kOpenRead, kOpenReadWrite). Follows no links
// and changes nothing. Exit code 6 if a system call fails; `path` is for messages.
Result<FoundFile> open_own(int folder, const std::string& name, unsigned access, const std::string& path);

}  // namespace ggufmill
