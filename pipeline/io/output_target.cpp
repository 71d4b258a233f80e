#include "pipeline/io/output_target.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "pipeline/core/option_reference.h"
#include "pipeline/io/platform/files.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/source_path.h"
#include "pipeline/io/store_scheme.h"

namespace ggufmill {
namespace {

Error refused(const std::string& path, std::string what, std::string help) {
  return {ExitCode::kUsage, path, std::move(what), "", std::move(help)};
}

// Returns nullopt, not an error, if nothing exists at `path`.
Result<std::optional<FileStatus>> look(const std::string& path, Links links) {
  FileStatus info;
  if (get_status(kCurrentFolder, path, links, info)) return info;
  if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
  return io_error(path, "inspect the file", errno);
}

// Error: `target` is the same file as `other`. It is reported at the place where the user requested the file, or else
// at its path.
Error same_file_as(const WrittenPath& target, const std::string& other, std::string help) {
  if (target.origin.where.empty())
    return refused(target.path, fmt::format("the {} is the same file as the {}", target.what, other), std::move(help));
  return error_at(target.origin, fmt::format("the {} '{}' is the same file as the {}", target.what, target.path, other),
                  std::move(help));
}

std::string describe(const WrittenPath& target) {
  const std::string& where = target.origin.where;
  return fmt::format("{} '{}'{}", target.what, target.path, where.empty() ? "" : fmt::format(" of {}", where));
}

// Returns a canonical spelling of `path`, with links and dots resolved as far as possible.
std::string place_of(const std::string& path) {
  if (is_address(path)) return path;
  std::error_code error;
  const fs::path place = fs::weakly_canonical(fs::absolute(path, error), error);
  if (error == std::errc::not_enough_memory) throw std::bad_alloc();
  return error ? path : place.string();
}

Status check_folder(const std::string& path) {
  const std::string above = folder_above(path);
  std::error_code ignored;
  if (!fs::is_directory(above, ignored))
    return refused(path, fmt::format("'{}' is a file, not a folder", above), "choose another output");
  if (const int error = why_not_writable(above); error != 0)
    return io_error(path, fmt::format("create files in '{}'", above), error);
  return ok();
}

using Inode = std::pair<std::uint64_t, std::uint64_t>;

// Returns the identity of the existing file, following links.
std::optional<Inode> id_of(const std::string& path) {
  const auto info = look(path, Links::kFollow);
  if (!info || !info.value()) return {};
  return Inode{info.value()->device, info.value()->inode};
}

}  // namespace

std::vector<std::string> check_distinct(std::span<const WrittenPath> written, std::span<const std::string> read,
                                        Diagnostics& errors) {
  std::map<std::string, const std::string*> inputs;  // by canonical path; existing files also by id
  std::map<Inode, const std::string*> input_ids;
  for (const std::string& path : read) {
    inputs.emplace(place_of(path), &path);
    if (const auto id = id_of(path)) input_ids.emplace(*id, &path);
  }
  std::vector<std::string> refused_paths;
  const auto refuse = [&](const WrittenPath& target, const std::string& other, std::string help) {
    errors.add(same_file_as(target, other, std::move(help)));
    refused_paths.push_back(target.path);
  };
  std::map<std::string, const WrittenPath*> outputs;
  for (const WrittenPath& target : written) {
    const std::string place =
        place_of(target.path);  // looked up by the canonical path: folders of the path may not exist yet
    const std::string* input = nullptr;
    if (const auto found = inputs.find(place); found != inputs.end()) input = found->second;
    if (const auto id = input ? std::nullopt : id_of(place))
      if (const auto found = input_ids.find(*id); found != input_ids.end()) input = found->second;
    if (input)
      refuse(target, fmt::format("input '{}'", *input),
             fmt::format("choose another {}: inputs are never overwritten", target.what));
    const auto [other, is_new] = outputs.emplace(place, &target);
    if (!is_new)
      refuse(target, describe(*other->second),
             fmt::format("give each {}its own path", target.what == other->second->what ? target.what + " " : ""));
  }
  return refused_paths;
}

Status check_local_target(const std::string& path, bool overwrite) {
  BOOST_OUTCOME_TRY(split_target(path));
  BOOST_OUTCOME_TRY(check_target(path, overwrite));
  return check_folder(path);
}

void check_written(std::span<const WrittenPath> written, std::span<const std::string> read, bool overwrite,
                   Diagnostics& errors) {
  const std::vector<std::string> refused_paths = check_distinct(written, read, errors);
  for (const WrittenPath& target : written) {
    if (std::ranges::count(refused_paths, target.path) != 0) continue;  // one error per path
    const auto scheme = find_store_scheme(target.path);
    const Status status =
        scheme ? scheme.value()->check_target(target.path, overwrite || target.may_replace) : Status(scheme.error());
    if (status) continue;
    errors.add(status.error());
    // A server that refuses or does not answer for one path does so for the others too.
    if (scheme && scheme.value() != &local_store() && status.error().code != ExitCode::kUsage) return;
  }
}

Status check_written(const WrittenPath& written, std::span<const std::string> read, bool overwrite) {
  Diagnostics errors;
  check_written({&written, 1}, read, overwrite, errors);
  if (!errors.empty()) return errors.together();
  return ok();
}

std::string folder_above(const std::string& path) {
  std::error_code ignored;
  fs::path above = fs::path(path).parent_path();
  while (!above.empty() && !fs::exists(above, ignored) && above.has_relative_path()) above = above.parent_path();
  return above.empty() ? "." : above.string();
}

Result<TargetPath> split_target(const std::string& path) {
  const std::size_t start = name_begin(path);
  TargetPath target{path.substr(0, start), path.substr(start)};
  if (path.find('\0') != std::string::npos)
    return refused("", "the output's path contains a NUL character", "remove it from the path");
  if (is_address(path)) return no_store_for(path);
  if (target.name.empty() || target.name == "." || target.name == "..")
    return refused(path, fmt::format("the output '{}' is a folder, not a file", path),
                   "add a file name: out/model.gguf");
  return target;
}

Result<std::optional<FileStatus>> check_target(const std::string& path, bool overwrite) {
  BOOST_OUTCOME_TRY(const std::optional<FileStatus> target, look(path, Links::kNoFollow));
  if (!target) return target;
  if (target->is_folder()) return refused(path, "the output is a folder", "add a file name: out/model.gguf");
  if (target->is_link())
    return refused(path, "the output is a symbolic link", "give the file that it points to, or remove the link");
  if (!target->is_file())
    return refused(path, "the output is not a regular file", "give a regular file: data is not written in order");
  if (!overwrite) return target_exists(path);
  return target;
}

Error target_exists(const std::string& path) {
  return refused(path, "the output already exists",
                 fmt::format("give {} to replace it, or choose another output", option_reference("overwrite", "true")));
}

}  // namespace ggufmill
