#include "pipeline/api/measure_journal.h"

#include <fmt/format.h>
#include <sys/file.h>
#include <xxhash.h>

#include <algorithm>

#include "pipeline/core/json.h"
#include "pipeline/io/output_folder.h"
#include "pipeline/io/own_file.h"
#include "pipeline/io/system_calls.h"
#include "pipeline/io/transfer.h"

namespace ggufmill {
namespace {

constexpr std::size_t kHashDigits = 16;
constexpr std::uint64_t kMaxBytes = 1 << 30;  // same limit as for a measurement

std::string hash_of(std::string_view text, std::uint64_t seed) {
  return fmt::format("{:016x}", XXH3_64bits_withSeed(text.data(), text.size(), seed));
}

std::uint64_t seed_of(const std::vector<TypeModule>& modules) {
  std::string all;
  for (const TypeModule& module : modules)
    all += fmt::format("{} {} {} {}\n", module.type, module.name, module.version, module.xxh3);
  return all.empty() ? 0 : XXH3_64bits(all.data(), all.size());
}

Result<std::string> read_from(int file, const std::string& path) {
  struct stat info {};
  if (retry([&] { return system_calls().fstat(file, &info); }) < 0) return io_error(path, "stat the file", errno);
  const auto bytes = static_cast<std::uint64_t>(info.st_size);
  if (bytes > kMaxBytes)
    return input_error(path, "is too large to be the journal of a measurement",
                       "remove it; its tensors will be measured again");
  std::string text(bytes, '\0');
  const auto into = std::as_writable_bytes(std::span(text));
  BOOST_OUTCOME_TRY(read_all({file, 0, into.data(), into.size(), into.size()}, path));
  return text;
}

// True if the text starts like a journal or is a prefix of such a start: 16 hexadecimal digits, a space and an object.
bool is_journal(std::string_view text) {
  for (std::size_t i = 0; i < std::min(text.size(), kHashDigits + 2); ++i) {
    const char wanted = i == kHashDigits ? ' ' : '{';
    const bool is_digit = (text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f');
    if (i < kHashDigits ? !is_digit : text[i] != wanted) return false;
  }
  return true;
}

std::string left_alone(const std::string& path, const std::string& why, const char* so) {
  return fmt::format("{}: this file is not used ({}), so {}", path, why, so);
}

}  // namespace

Result<MeasureJournal> MeasureJournal::open(const std::string& path, const std::vector<TypeModule>& modules) {
  MeasureJournal journal;
  journal.seed_ = seed_of(modules);
  journal.path_ = path;
  if (!path.empty()) {
    BOOST_OUTCOME_TRY(journal.open_file());
  }
  return journal;
}

Status MeasureJournal::open_file() {
  BOOST_OUTCOME_TRY(FoundFile there, open_own(AT_FDCWD, path_, O_RDWR, path_));
  if (!there.strange.empty()) {
    warnings_.push_back(left_alone(path_, there.strange, "an interrupted measurement starts over"));
    return ok();
  }
  file_ = std::move(there.file);
  if (!file_) {
    const int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC;
    file_ = Descriptor(retry([&] { return system_calls().openat(AT_FDCWD, path_.c_str(), flags, kOwnMode); }));
    if (!file_) return io_error(path_, "create the journal of the measurement", errno);
  }
  if (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    return Error{ExitCode::kTransient, path_, "another process is taking the same measurement", "",
                 "wait until it finishes"};
  BOOST_OUTCOME_TRY(const std::string text, read_from(file_.get(), path_));
  if (!is_journal(text)) {
    file_ = Descriptor();
    return input_error(path_, "has the name of a measurement journal but is not one",
                       "move it away, or write the measurement to another file");
  }
  take(text);
  // Overwrites an incomplete last line.
  end_ = text.rfind('\n') + 1;  // 0 if there is no newline
  return ok();
}

Status MeasureJournal::read_also(const std::string& path) {
  BOOST_OUTCOME_TRY(const FoundFile there, open_own(AT_FDCWD, path, O_RDONLY, path));
  if (!there.strange.empty()) warnings_.push_back(left_alone(path, there.strange, "its tensors are measured again"));
  if (!there.file) return ok();
  BOOST_OUTCOME_TRY(const std::string text, read_from(there.file.get(), path));
  take(text);
  return ok();
}

void MeasureJournal::take(std::string_view text) {
  for (std::size_t end = text.find('\n'); end != text.npos; text.remove_prefix(end + 1), end = text.find('\n')) {
    const std::string_view line = text.substr(0, end);
    if (line.size() <= kHashDigits) continue;
    const std::string_view rest = line.substr(kHashDigits + 1);
    if (line.substr(0, kHashDigits) != hash_of(rest, seed_)) continue;
    if (auto tensor = read_measured_line(rest)) known_[tensor->made_of] = std::move(*tensor);
  }
}

const MeasuredTensor* MeasureJournal::find(const std::string& made_of,
                                           const std::vector<const TypeInfo*>& types) const {
  const auto found = known_.find(made_of);
  if (found == known_.end() || found->second.types.size() != types.size()) return nullptr;
  const bool has_all = std::ranges::all_of(types, [&](const TypeInfo* type) { return found->second.find(type->name); });
  return has_all ? &found->second : nullptr;
}

Status MeasureJournal::add(std::span<const MeasuredTensor> tensors) {
  if (!file_) return ok();
  std::string lines;
  for (const MeasuredTensor& tensor : tensors) {
    const std::string line = write_measured_line(tensor);
    lines += fmt::format("{} {}\n", hash_of(line, seed_), line);
  }
  BOOST_OUTCOME_TRY(write_all(file_.get(), path_, end_, std::as_bytes(std::span(lines))));
  if (sync_to_disk(file_.get()) < 0) return io_error(path_, "flush to the disk (fsync)", errno);
  end_ += lines.size();
  return ok();
}

}  // namespace ggufmill
