#include "pipeline/io/output_target.h"

#include <fmt/format.h>

#include "pipeline/io/system_calls.h"

namespace ggufmill {
namespace {

Error refused(const std::string& path, std::string what, std::string help) {
  return {ExitCode::kUsage, path, std::move(what), "", std::move(help)};
}

// Nothing there is no error.
Result<std::optional<struct stat>> look(const std::string& path, int flags) {
  struct stat info {};
  if (retry([&] { return system_calls().fstatat(AT_FDCWD, path.c_str(), &info, flags); }) == 0) return info;
  if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
  return io_error(path, "look at the file", errno);
}

bool same_file(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

// By device and inode, so that no spelling, symbolic link or hard link hides an input.
Status check_no_input(const std::string& path, const std::vector<std::string>& inputs) {
  BOOST_OUTCOME_TRY(const std::optional<struct stat> target, look(path, 0));
  if (!target) return ok();
  for (const std::string& input : inputs) {
    BOOST_OUTCOME_TRY(const std::optional<struct stat> source, look(input, 0));
    if (source && same_file(*target, *source))
      return refused(path, fmt::format("the output is the same file as the input '{}'", input),
                     "name another output: an input is never written");
  }
  return ok();
}

}  // namespace

Result<TargetPath> split_target(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::size_t start = slash == std::string::npos ? 0 : slash + 1;
  TargetPath target{path.substr(0, start), path.substr(start)};
  if (path.find('\0') != std::string::npos)
    return refused("", "the output's path holds a zero byte", "name the output without it");
  if (target.name.empty() || target.name == "." || target.name == "..")
    return refused(path, fmt::format("the output '{}' names a folder, not a file", path),
                   "add a file name: out/model.gguf");
  return target;
}

Result<std::optional<struct stat>> check_target(const std::string& path, const AtomicFile::Options& options) {
  BOOST_OUTCOME_TRY(check_no_input(path, options.inputs));
  BOOST_OUTCOME_TRY(const std::optional<struct stat> target, look(path, AT_SYMLINK_NOFOLLOW));
  if (!target) return target;
  if (S_ISDIR(target->st_mode)) return refused(path, "the output is a folder", "add a file name: out/model.gguf");
  if (S_ISLNK(target->st_mode))
    return refused(path, "the output is a symbolic link", "name the file that it points to, or remove the link");
  if (!S_ISREG(target->st_mode))
    return refused(path, "the output is not a regular file", "name a file on a disk: data is written at positions");
  if (!options.overwrite) return target_exists(path);
  return target;
}

Error target_exists(const std::string& path) {
  return refused(path, "the output exists already", "give --overwrite to replace it, or name another output");
}

}  // namespace ggufmill
