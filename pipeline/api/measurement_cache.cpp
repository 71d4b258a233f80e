#include "pipeline/api/measurement_cache.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <chrono>

#include "pipeline/io/machine.h"
#include "pipeline/io/own_file.h"
#include "pipeline/io/platform/files.h"
#include "pipeline/io/platform/process.h"
#include "pipeline/io/transfer.h"

namespace ggufmill {
namespace {

constexpr std::size_t kHashDigits = 16;
constexpr std::uint64_t kMaxBytes = 1 << 28;  // limit of a file; 256 experts as 50 types need 2 MB
constexpr unsigned kPrivateFolder = 0700;     // as the XDG Base Directory Specification asks for

std::string hash_of(std::string_view text) { return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size())); }

Result<std::string> read_from(int file, const std::string& path) {
  FileStatus info;
  if (!get_status(file, info)) return io_error(path, "stat the file", errno);
  const std::uint64_t bytes = info.bytes;
  if (bytes > kMaxBytes) return input_error(path, "is too large");
  std::string text(bytes, '\0');
  const auto into = std::as_writable_bytes(std::span(text));
  BOOST_OUTCOME_TRY(read_all({file, 0, into.data(), into.size(), into.size()}, path));
  return text;
}

// Creates a folder and its parents.
Status make_folders(const std::string& path) {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string folder = path.substr(0, end);
    const auto make = [&] { return system_calls().make_folder(kCurrentFolder, folder.c_str(), kPrivateFolder); };
    if (retry(make) < 0 && errno != EEXIST) return io_error(folder, "create the folder", errno);
    if (end == path.npos) return ok();
  }
}

}  // namespace

std::string measurement_cache_folder() { return cache_folder("measurements"); }

MeasurementCache::Lines MeasurementCache::lines_of(std::string_view text, bool& is_damaged) const {
  Lines lines;
  for (; !text.empty(); text.remove_prefix(std::min(text.size(), text.find('\n') + 1))) {
    const std::string_view line = text.substr(0, text.find('\n'));
    const std::string_view rest = line.substr(std::min(line.size(), kHashDigits + 1));
    const bool is_complete = line.size() < text.size();  // ends with a newline
    if (!is_complete || line.substr(0, kHashDigits) != hash_of(rest)) {
      is_damaged = true;
      if (!is_complete) break;
      continue;
    }
    auto measured = read_measured_line(rest);
    if (!measured) continue;
    lines.texts[measured->made_of] = line;
    lines.measured[measured->made_of] = std::move(*measured);
  }
  return lines;
}

MeasurementCache::Lines MeasurementCache::read(const std::string& tensor) {
  const std::string path = path_of(tensor);
  std::string why;
  Lines lines;
  if (auto there = open_own(kCurrentFolder, path, kOpenRead, path); !there) {
    why = there.error().what;
  } else if (there.value().file) {
    bool is_damaged = false;
    if (const auto text = read_from(there.value().file.get(), path))
      lines = lines_of(text.value(), is_damaged);
    else
      why = text.error().what;
    if (is_damaged) why = "it is damaged";
  } else {
    why = there.value().strange;
  }
  if (why.empty()) return lines;
  if (unused_.empty())
    unused_ = fmt::format("{}: {}", path, why);
  else
    ++others_unused_;
  return lines;
}

const MeasuredTensor* MeasurementCache::find(const std::string& tensor, const std::string& made_of) {
  if (folder_.empty()) return nullptr;
  auto known = known_.find(tensor);
  if (known == known_.end()) known = known_.emplace(tensor, read(tensor)).first;
  const auto found = known->second.measured.find(made_of);
  return found == known->second.measured.end() ? nullptr : &found->second;
}

void MeasurementCache::add(const std::string& tensor, std::span<const MeasuredTensor> measured) {
  if (folder_.empty() || !unwritten_.empty()) return;
  bool ignored = false;
  const std::string path = path_of(tensor);
  Lines lines;  // read again, as another process may have added to the file
  if (const auto there = open_own(kCurrentFolder, path, kOpenRead, path); there && there.value().file)
    if (const auto text = read_from(there.value().file.get(), path)) lines = lines_of(text.value(), ignored);
  for (const MeasuredTensor& each : measured) {
    const std::string line = write_measured_line(each);
    lines.texts[each.made_of] = hash_of(line) + " " + line;
    lines.measured[each.made_of] = each;
  }
  std::string text;
  for (const auto& [made_of, line] : lines.texts) text += line + "\n";
  if (const Status written = write(tensor, text); !written)
    unwritten_ = fmt::format("{}: {}", written.error().where, written.error().what);
  known_[tensor] = std::move(lines);
}

// The bytes need not be durable: after a power cut, a file that is empty or damaged is measured again.
Status MeasurementCache::write(const std::string& tensor, const std::string& text) {
  BOOST_OUTCOME_TRY(make_folders(folder_));
  const std::string path = path_of(tensor);
  const std::string temporary = fmt::format("{}/.{}.{}.{}", folder_, tensor, process_id(),
                                            std::chrono::steady_clock::now().time_since_epoch().count());
  const unsigned flags = kOpenWrite | kOpenCreate | kOpenNew | kOpenNoFollow;
  const Descriptor file = open_file(kCurrentFolder, temporary, flags, kOwnMode);
  if (!file) return io_error(temporary, "create the file", errno);
  Status status = write_all(file.get(), temporary, 0, std::as_bytes(std::span(text)));
  const auto rename = [&] {
    return system_calls().rename(kCurrentFolder, temporary.c_str(), kCurrentFolder, path.c_str(), Rename::kReplace);
  };
  if (status && retry(rename) < 0) status = io_error(path, "rename the file", errno);
  if (!status) remove_file(kCurrentFolder, temporary);
  return status;
}

std::vector<std::string> MeasurementCache::warnings() const {
  std::vector<std::string> warnings;
  if (!unused_.empty())
    warnings.push_back(
        fmt::format("a file in the cache of measurements is not used{}, so its tensor is measured again: {}",
                    others_unused_ == 0 ? "" : fmt::format(", nor are {} others", others_unused_), unused_));
  if (!unwritten_.empty()) warnings.push_back("the measurement is not kept in the cache: " + unwritten_);
  return warnings;
}

}  // namespace ggufmill
