#include "pipeline/api/publish/path_names.h"

#include <algorithm>

#include "pipeline/config/node_text.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/source_path.h"

namespace ggufmill {
namespace {

// Returns true if a path shows a folder of this machine.
bool shows_folder(const std::string& path) {
  const fs::path parts(path);
  return path.starts_with('~') || parts.is_absolute() ||
         std::ranges::any_of(parts, [](const fs::path& part) { return part == ".."; });
}

// Returns the last `count` components of a path.
std::string last_components(const std::string& path, std::size_t count) {
  std::vector<std::string> parts;
  for (const fs::path& part : fs::path(path).relative_path())
    if (const std::string name = part.string(); !name.empty() && name != "." && name != "..") parts.push_back(name);
  std::string last;
  for (std::size_t i = parts.size() - std::min(count, parts.size()); i < parts.size(); ++i)
    last += (last.empty() ? "" : "/") + parts[i];
  return last;
}

// Names the paths that show a folder, with as many components as tell them apart, and from the names that are taken.
std::map<std::string, std::string> short_names(const std::set<std::string>& paths, std::set<std::string> taken) {
  constexpr std::size_t kMaxComponents = 64;
  std::map<std::string, std::string> names;
  for (const std::string& path : paths)
    if (!shows_folder(path)) taken.insert(names[path] = path);
  for (const std::string& path : paths) {
    if (!shows_folder(path)) continue;
    std::string name;
    for (std::size_t count = 1; count <= kMaxComponents; ++count)
      if (name = last_components(path, count); !taken.contains(name)) break;
    while (taken.contains(name)) name.insert(0, "other/");  // ../a and a
    taken.insert(names[path] = name);
  }
  return names;
}

std::string parent_of(const std::string& path) { return path.substr(0, name_begin(path)); }

}  // namespace

Result<PathNames> PathNames::of(const std::string& text, const std::string& file, const Registry& registry,
                                const std::set<std::string>& inputs) {
  BOOST_OUTCOME_TRY(const std::string deciding, deciding_part_of(text, file, registry));
  const auto name_of_target = [](const std::string& path) {
    return is_address(path) || shows_folder(path) ? last_components(path, 1) : path;
  };
  const auto is_input = [&](const std::string& value) { return inputs.contains(value); };
  std::set<std::string> read, taken;
  std::map<std::string, std::string> pins;
  const auto collect = [&](const std::string& path, PathUse use) {
    if (use == PathUse::kWritten)
      taken.insert(name_of_target(path));
    else if (is_address(path))
      pins.emplace(path, "");
    else
      read.insert(path);
    return path;
  };
  BOOST_OUTCOME_TRY(with_other_paths(deciding, file, registry, collect, is_input));
  PathNames made;
  made.names_ = short_names(read, std::move(taken));
  for (auto& [address, pin] : pins) {
    BOOST_OUTCOME_TRY(pin, pinned(address));
    made.names_[address] = pin;
  }
  const auto name = [&](const std::string& path, PathUse use) {
    return use == PathUse::kRead ? made.names_[path] : name_of_target(path);
  };
  BOOST_OUTCOME_TRY(made.text_, with_other_paths(deciding, file, registry, name, is_input));
  return made;
}

std::string PathNames::name_of(const std::string& path) const {
  if (is_address(path)) return path;
  if (const auto known = names_.find(path); known != names_.end()) return known->second;
  // The innermost folder is the last one in their order.
  for (auto each = names_.rbegin(); each != names_.rend(); ++each) {
    const auto& [folder, name] = *each;
    if (!is_address(folder) && path.starts_with(folder.ends_with('/') ? folder : folder + "/"))
      return name + (name.ends_with('/') ? "" : "/") + path.substr(folder.size() + (folder.ends_with('/') ? 0 : 1));
  }
  for (const auto& [file, name] : names_)
    if (!is_address(file) && parent_of(file) == parent_of(path)) return parent_of(name) + last_components(path, 1);
  return shows_folder(path) ? last_components(path, 1) : path;
}

}  // namespace ggufmill
