#pragma once
// Owners of files, and who may write to them.

#include <windows.h>

#include <cstdint>
#include <string>

namespace ggufmill::windows {

// Numbers of owners: this user, and the system with its administrators. Others have larger ones.
constexpr std::uint64_t kOwnUser = 1, kSystem = 0;

// Returns the number of the owner of an open file or folder; this user if the file system has no owners.
std::uint64_t owner_of(HANDLE handle);
// Returns why users other than its owner, this user, and administrators may change an open file, or rename or replace
// what is in an open folder, as text for a message: "Everyone may write to it". Empty if none may.
std::string why_writable_by_others(HANDLE handle);

}  // namespace ggufmill::windows
