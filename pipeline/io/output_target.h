#pragma once
// Rules for which paths may be written and overwritten.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/io/platform/files.h"

namespace ggufmill {

// A target path split into folder and name: "out/a.gguf" becomes "out/" and "a.gguf". Exit code 2 if the path does not
// name a file.
struct TargetPath {
  std::string folder;  // with the trailing slash; empty: the current folder
  std::string name;
};
Result<TargetPath> split_target(const std::string& path);

// Returns the status of the file at `path`: nullopt if nothing exists there, or a regular file that may be replaced
// according to `overwrite`. Otherwise exit code 2; 6 if the system does not allow access.
Result<std::optional<FileStatus>> check_target(const std::string& path, bool overwrite);

// A path that a job writes, the kind of file written there, and where in the configuration it was requested, for
// messages.
struct WrittenPath {
  std::string path;
  std::string what = "output";
  Origin origin{};
  bool may_replace = false;  // what an earlier run of the same plan wrote there
};

// Adds an error (exit code 2) for every path in `written` that is the same file as an earlier one or as one in `read`,
// regardless of spelling and links. Returns the refused paths.
std::vector<std::string> check_distinct(std::span<const WrittenPath> written, std::span<const std::string> read,
                                        Diagnostics& errors);

// Returns an error (exit code 2) for a path that cannot be that of a local output: it is not a file, it exists and may
// not be replaced according to `overwrite`, or its folder is not writable.
Status check_local_target(const std::string& path, bool overwrite);

// Performs check_distinct() and also checks the target: adds an error for every other path in `written` that its
// store refuses (StoreScheme::check_target). Every
// operation that writes a file calls this first: a file that is read is never written, and no file is replaced without
// being asked for.
void check_written(std::span<const WrittenPath> written, std::span<const std::string> read, bool overwrite,
                   Diagnostics& errors);
Status check_written(const WrittenPath& written, std::span<const std::string> read, bool overwrite);

// Returns the nearest existing folder above `path`; the path's own folder may not exist yet.
std::string folder_above(const std::string& path);

// Error: the target exists and may not be replaced.
Error target_exists(const std::string& path);

}  // namespace ggufmill
