#pragma once
// Differences between operating systems that code outside this folder depends on.

namespace ggufmill {

// kIsPosix: files have modes, programs are in PATH of a POSIX shell, and /proc is that of this system.
// kReplacesOpenFiles: Rename::kReplace works for a file that this process has open.
// kHasUserNumbers: FileStatus::owner and group are numbers that a POSIX system on another machine understands.
// kLibrariesBesidePrograms: an installed library is in the folder of programs, and not in one of its own.
// kPathListSeparator: separates the paths in a variable of the environment.
#ifdef _WIN32
inline constexpr bool kIsPosix = false, kReplacesOpenFiles = false, kHasUserNumbers = false;
inline constexpr bool kLibrariesBesidePrograms = true;
inline constexpr char kPathListSeparator = ';';
#else
inline constexpr bool kIsPosix = true, kReplacesOpenFiles = true, kHasUserNumbers = true;
inline constexpr bool kLibrariesBesidePrograms = false;
inline constexpr char kPathListSeparator = ':';
#endif

}  // namespace ggufmill
