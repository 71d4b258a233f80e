#include "stages/importance/importance_file.h"

#include <fmt/format.h>

#include <unordered_set>

#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

constexpr std::uint64_t kMinEntry = 4 + 1 + 4 + 4 + 4;         // bytes in the file
constexpr std::uint64_t kMaxNameLength = 65535;                // bytes of a name
constexpr std::uint64_t kEntryMemory = 256;                    // bytes, in addition to the name
constexpr std::uint64_t kMaxMemory = std::uint64_t{64} << 20;  // for all entries: 200,000 tensors and more

class LegacyReader {
 public:
  explicit LegacyReader(std::shared_ptr<const ByteSource> file) : file_(std::move(file)) {}

  Result<ImportanceFile> read() {
    ImportanceFile out;
    out.path = file_->path();
    out.files = {out.path};
    BOOST_OUTCOME_TRY(const std::uint64_t entries, length("the number of entries", 1, INT32_MAX));
    if (entries > left() / kMinEntry)
      return error(0, fmt::format("{} entries do not fit in the remaining {} bytes", entries, left()));
    for (std::uint64_t i = 0; i < entries; ++i) {
      part_ = fmt::format("entry {} of {}", i + 1, entries);
      BOOST_OUTCOME_TRY(out.entries.emplace_back(), read_entry());
    }
    part_ = "the data after the entries";
    if (left() == 0) return out;
    BOOST_OUTCOME_TRY(const std::uint64_t chunks, length("the number of chunks", 0, INT32_MAX));
    out.chunks = static_cast<std::uint32_t>(chunks);
    if (left() == 0) return out;
    BOOST_OUTCOME_TRY(const std::uint64_t bytes, length("the length of the data set name", 0, kMaxNameLength));
    if (bytes == 0) return out;
    BOOST_OUTCOME_TRY(out.datasets.emplace_back(), text(bytes));
    return out;
  }

 private:
  std::uint64_t left() const { return file_->bytes() - at_; }

  Error error(std::uint64_t at, const std::string& what) const {
    Error error = input_error(file_->path(), fmt::format("not a valid importance file: {}", what),
                              "importance files are written by llama-imatrix, as GGUF or in the legacy .dat format");
    error.detail = fmt::format("at byte {:#x}, in {}", at, part_);
    return error;
  }

  Result<std::int32_t> number(std::string_view what) {
    std::int32_t value = 0;
    if (left() < sizeof value) return error(at_, fmt::format("the file ends where {} is expected", what));
    BOOST_OUTCOME_TRY(file_->read(at_, std::as_writable_bytes(std::span(&value, 1))));
    at_ += sizeof value;
    return value;
  }

  // Reads a number from `least` to `most`.
  Result<std::uint64_t> length(std::string_view what, std::int64_t least, std::uint64_t most) {
    const std::uint64_t at = at_;
    BOOST_OUTCOME_TRY(const std::int32_t value, number(what));
    if (value < least || static_cast<std::uint64_t>(value) > most)
      return error(at, fmt::format("{} is {}, not {} to {}", what, value, least, most));
    return static_cast<std::uint64_t>(value);
  }

  // Reads a text and truncates it at the first zero byte, as the reference does.
  Result<std::string> text(std::uint64_t bytes) {
    if (left() < bytes) return error(at_, fmt::format("a string of {} bytes, but only {} are left", bytes, left()));
    std::string text(bytes, '\0');
    BOOST_OUTCOME_TRY(file_->read(at_, std::as_writable_bytes(std::span(text))));
    at_ += bytes;
    return text.substr(0, text.find('\0'));
  }

  Result<std::string> name() {
    const std::uint64_t at = at_;
    BOOST_OUTCOME_TRY(const std::uint64_t bytes, length("the length of the name", 1, kMaxNameLength));
    BOOST_OUTCOME_TRY(std::string name, text(bytes));
    if (name.size() != bytes || !is_utf8(name)) return error(at, "the name is not valid UTF-8 without zero bytes");
    if (!names_.insert(name).second) return error(at, fmt::format("duplicate entry for {}", quoted_name(name)));
    memory_ += bytes + kEntryMemory;
    if (memory_ > kMaxMemory) return error(at, "more entries than any model has tensors");
    return name;
  }

  Result<ImportanceEntry> read_entry() {
    ImportanceEntry entry;
    BOOST_OUTCOME_TRY(entry.name, name());
    part_ += fmt::format(", {}", quoted_name(entry.name));
    BOOST_OUTCOME_TRY(const std::uint64_t calls, length("the number of calls", 0, INT32_MAX));
    entry.calls = static_cast<std::int32_t>(calls);
    const std::uint64_t at = at_;
    BOOST_OUTCOME_TRY(const std::uint64_t count, length("the number of values", 1, INT32_MAX));
    if (left() / sizeof(float) < count)
      return error(at, fmt::format("{} values, but only {} bytes are left", count, left()));
    entry.sums = {file_, at_, count, false};
    at_ += count * sizeof(float);
    return entry;
  }

  std::shared_ptr<const ByteSource> file_;
  std::uint64_t at_ = 0;
  std::string part_ = "the beginning";
  std::unordered_set<std::string> names_;
  std::uint64_t memory_ = 0;
};

}  // namespace

Result<ImportanceFile> read_legacy_entries(std::shared_ptr<const ByteSource> file) {
  return LegacyReader(std::move(file)).read();
}

}  // namespace ggufmill
