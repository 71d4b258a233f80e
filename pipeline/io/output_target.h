#pragma once
// What may and may not be overwritten.

#include <sys/stat.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pipeline/core/error.h"

namespace ggufmill {

// A target path taken apart: "out/a.gguf" is "out" and "a.gguf". Exit code 2 where it names no file.
struct TargetPath {
  std::string folder;  // empty: the current one
  std::string name;
};
Result<TargetPath> split_target(const std::string& path);

// What is at `path` now: nothing, or a regular file that may be replaced, as `overwrite` says. Else exit code 2; 6
// where the system does not let us look.
Result<std::optional<struct stat>> check_target(const std::string& path, bool overwrite);

// A path that a job writes, what is written there, and where that was asked for, for messages.
struct WrittenPath {
  std::string path;
  std::string what = "output";
  Origin origin{};
};

// Adds an error (exit code 2) for every path of `written` that is the same file as one before it or as one of `read`,
// whatever its spelling and links. Gives the paths that it has refused.
std::vector<std::string> check_distinct(std::span<const WrittenPath> written, std::span<const std::string> read,
                                        Diagnostics& errors);

// The same, and what is there now: adds an error for every other path of `written` that is no place for a file, that
// exists, where `overwrite` does not allow to replace it, or whose folder nothing can be written to. Whatever writes a
// file asks this first: no file that a call reads is ever written, and none is replaced unasked.
void check_written(std::span<const WrittenPath> written, std::span<const std::string> read, bool overwrite,
                   Diagnostics& errors);
Status check_written(const WrittenPath& written, std::span<const std::string> read, bool overwrite);

// The nearest folder above `path` that exists: its own folder may yet have to be made.
std::string folder_above(const std::string& path);

// The target exists and is not to be replaced.
Error target_exists(const std::string& path);

}  // namespace ggufmill
