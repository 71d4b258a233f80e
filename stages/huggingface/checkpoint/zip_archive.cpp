#include "stages/huggingface/checkpoint/zip_archive.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/crc.hpp>
#include <cstring>
#include <vector>

#include "pipeline/core/text.h"

namespace ggufmill::huggingface {
namespace {

constexpr std::uint64_t kMaxDirectoryBytes = 64 << 20;
constexpr std::uint64_t kMaxFiles = 1 << 20;

constexpr std::string_view kFileMark = "PK\3\4", kEntryMark = "PK\1\2", kEndMark = "PK\5\6", kEnd64Mark = "PK\6\6",
                           kLocatorMark = "PK\6\7";
constexpr std::size_t kFileBytes = 30, kEntryBytes = 46, kEndBytes = 22, kEnd64Bytes = 56, kLocatorBytes = 20;
constexpr std::uint16_t kIn64Bits = 1;  // extra field for values that do not fit in 32 bits
constexpr std::uint16_t kEncrypted = 1;
constexpr std::uint16_t kStored = 0;

// Reads a little-endian number; it must lie within `bytes`.
std::uint64_t number(std::string_view bytes, std::size_t at, std::size_t width) {
  std::uint64_t value = 0;
  for (std::size_t i = width; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

Result<std::string> read_bytes(const ByteSource& file, std::uint64_t offset, std::uint64_t bytes) {
  std::string text(bytes, '\0');
  BOOST_OUTCOME_TRY(file.read(offset, std::as_writable_bytes(std::span(text))));
  return text;
}

Error wrong(const ByteSource& file, std::string what, std::uint64_t at, std::string help = kDamagedFileHelp) {
  Error error = input_error(file.path(), std::move(what), std::move(help));
  error.detail = fmt::format("at byte {:#x}", at);
  return error;
}

}  // namespace

class ZipArchive::DirectoryReader {
 public:
  explicit DirectoryReader(ZipArchive& archive) : archive_(archive), file_(*archive.file_) {}

  Status read() {
    BOOST_OUTCOME_TRY(find_directory());
    BOOST_OUTCOME_TRY(read_entries());
    return check_places();
  }

 private:
  // Looks for the end record at the end of the file, before a comment of up to 64 KB.
  Status find_directory() {
    const std::uint64_t bytes = std::min<std::uint64_t>(file_.bytes(), kEndBytes + 0xffff);
    tail_at_ = file_.bytes() - bytes;
    BOOST_OUTCOME_TRY(tail_, read_bytes(file_, tail_at_, bytes));
    for (std::size_t at = tail_.size() < kEndBytes ? 0 : tail_.size() - kEndBytes + 1; at-- > 0;) {
      const bool is_end = tail_.compare(at, kEndMark.size(), kEndMark) == 0 &&
                          at + kEndBytes + number(tail_, at + 20, 2) == tail_.size();
      if (is_end) return read_end(at);
    }
    return wrong(file_, "the zip archive has no directory at its end", file_.bytes());
  }

  Status read_end(std::size_t at) {
    const std::uint64_t end = tail_at_ + at;
    const bool is_64 = at >= kLocatorBytes && tail_.compare(at - kLocatorBytes, kLocatorMark.size(), kLocatorMark) == 0;
    if (is_64) return read_end_64(number(tail_, at - kLocatorBytes + 8, 8), end - kLocatorBytes);
    if (number(tail_, at + 4, 2) != 0 || number(tail_, at + 6, 2) != 0) return several_disks(end);
    return set_directory(number(tail_, at + 10, 2), number(tail_, at + 12, 4), number(tail_, at + 16, 4), end);
  }

  Status read_end_64(std::uint64_t at, std::uint64_t before) {
    if (at > before || before - at < kEnd64Bytes)
      return wrong(file_, "the zip archive's directory does not end at the recorded position", before);
    BOOST_OUTCOME_TRY(const std::string end, read_bytes(file_, at, kEnd64Bytes));
    if (!end.starts_with(kEnd64Mark))
      return wrong(file_, "the zip archive's directory does not end at the recorded position", at);
    if (number(end, 16, 4) != 0 || number(end, 20, 4) != 0) return several_disks(at);
    return set_directory(number(end, 32, 8), number(end, 40, 8), number(end, 48, 8), at);
  }

  Error several_disks(std::uint64_t at) const {
    return wrong(file_, "the zip archive is split into several parts", at, "join its parts into one file");
  }

  Status set_directory(std::uint64_t files, std::uint64_t bytes, std::uint64_t offset, std::uint64_t end) {
    if (offset > end || bytes > end - offset)
      return wrong(file_,
                   fmt::format("the zip archive's directory of {} bytes at {:#x} extends past its end", bytes, offset),
                   end);
    if (bytes > kMaxDirectoryBytes || files > kMaxFiles)
      return wrong(file_,
                   fmt::format("the zip archive has {} files in a directory of {} bytes; the limits are {} and {}",
                               files, bytes, kMaxFiles, kMaxDirectoryBytes),
                   end, "is this a torch.save file?");
    files_ = files;
    directory_at_ = offset;
    BOOST_OUTCOME_TRY(directory_, read_bytes(file_, offset, bytes));
    return ok();
  }

  Status read_entries() {
    std::size_t at = 0;
    for (std::uint64_t i = 0; i < files_; ++i) {
      if (directory_.size() - at < kEntryBytes || directory_.compare(at, kEntryMark.size(), kEntryMark) != 0)
        return wrong(file_, fmt::format("entry {} of the zip archive's directory is not valid", i), directory_at_ + at);
      const std::size_t name = number(directory_, at + 28, 2), extra = number(directory_, at + 30, 2),
                        comment = number(directory_, at + 32, 2);
      if (directory_.size() - at - kEntryBytes < name + extra + comment)
        return wrong(file_, fmt::format("entry {} of the zip archive's directory extends past its end", i),
                     directory_at_ + at);
      BOOST_OUTCOME_TRY(read_entry(i, at, name, extra));
      at += kEntryBytes + name + extra + comment;
    }
    return ok();
  }

  Status read_entry(std::uint64_t index, std::size_t at, std::size_t name_bytes, std::size_t extra_bytes) {
    const std::string name = directory_.substr(at + kEntryBytes, name_bytes);
    Entry entry;
    entry.flags = static_cast<std::uint16_t>(number(directory_, at + 8, 2));
    entry.method = static_cast<std::uint16_t>(number(directory_, at + 10, 2));
    entry.checksum = static_cast<std::uint32_t>(number(directory_, at + 16, 4));
    entry.stored_bytes = number(directory_, at + 20, 4);
    entry.bytes = number(directory_, at + 24, 4);
    entry.header = number(directory_, at + 42, 4);
    if (!take_64_bits(std::string_view(directory_).substr(at + kEntryBytes + name_bytes, extra_bytes), entry))
      return wrong(file_, fmt::format("{} in the zip archive has no size", quoted_name(name)), directory_at_ + at);
    if (index == 0) archive_.folder_ = name.substr(0, std::min(name.find('/'), name.size()));
    if (!archive_.entries_.emplace(name, entry).second)
      return wrong(file_, fmt::format("the zip archive contains {} twice", quoted_name(name)), directory_at_ + at,
                   "save the file again with torch.save");
    return ok();
  }

  // Values that are 0xffffffff are stored in an extra field instead, in this order. Returns false if the field is too
  // short for them.
  static bool take_64_bits(std::string_view extra, Entry& entry) {
    constexpr std::uint64_t kElsewhere = 0xffffffff;
    std::string_view field;
    while (extra.size() >= 4) {
      const std::uint64_t bytes = number(extra, 2, 2);
      if (bytes > extra.size() - 4) break;
      if (number(extra, 0, 2) == kIn64Bits) field = extra.substr(4, bytes);
      extra.remove_prefix(4 + bytes);
    }
    for (std::uint64_t* each : {&entry.bytes, &entry.stored_bytes, &entry.header}) {
      if (*each != kElsewhere) continue;
      if (field.size() < 8) return false;
      *each = number(field, 0, 8);
      field.remove_prefix(8);
    }
    return true;
  }

  // Checks that every file ends before the next one begins.
  Status check_places() {
    std::vector<std::pair<const std::string, Entry>*> order;
    for (auto& each : archive_.entries_) order.push_back(&each);
    std::ranges::sort(order, {}, [](const auto* each) { return each->second.header; });
    for (std::size_t i = 0; i < order.size(); ++i) {
      Entry& entry = order[i]->second;
      entry.end = i + 1 < order.size() ? order[i + 1]->second.header : directory_at_;
      const std::uint64_t least = kFileBytes + order[i]->first.size();
      if (entry.header > entry.end || entry.end - entry.header < least ||
          entry.stored_bytes > entry.end - entry.header - least)
        return wrong(file_,
                     fmt::format("{} in the zip archive, {} bytes, overlaps the data after it",
                                 quoted_name(order[i]->first), entry.stored_bytes),
                     entry.header);
    }
    return ok();
  }

  ZipArchive& archive_;
  const ByteSource& file_;
  std::string tail_, directory_;
  std::uint64_t tail_at_ = 0, directory_at_ = 0, files_ = 0;
};

Result<ZipArchive> ZipArchive::open(std::shared_ptr<const ByteSource> file) {
  ZipArchive archive;
  archive.file_ = std::move(file);
  BOOST_OUTCOME_TRY(DirectoryReader(archive).read());
  return archive;
}

Result<ZipPlace> ZipArchive::find(std::string_view name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end())
    return input_error(file_->path(), fmt::format("the zip archive has no {}", quoted_name(name)), kDamagedFileHelp);
  const Entry& entry = found->second;
  const auto wrong_here = [&](std::string_view what, std::string help) {
    return wrong(*file_, fmt::format("{} in the zip archive {}", quoted_name(name), what), entry.header,
                 std::move(help));
  };
  if ((entry.flags & kEncrypted) != 0) return wrong_here("is encrypted", "save the file again with torch.save");
  if (entry.method != kStored || entry.stored_bytes != entry.bytes)
    return wrong_here("is compressed, which torch.save does not do", "save the file again with torch.save");
  BOOST_OUTCOME_TRY(const std::string header, read_bytes(*file_, entry.header, kFileBytes + name.size()));
  if (!header.starts_with(kFileMark) || number(header, 26, 2) != name.size() || header.substr(kFileBytes) != name)
    return wrong_here("has no matching entry where the directory says it begins", kDamagedFileHelp);
  ZipPlace place{entry.header + header.size() + number(header, 28, 2), entry.bytes};
  if (place.offset > entry.end || place.bytes > entry.end - place.offset)
    return wrong_here(fmt::format("overlaps the data after it, at byte {:#x}", entry.end), kDamagedFileHelp);
  return place;
}

Status ZipArchive::check(std::string_view name) const {
  BOOST_OUTCOME_TRY(const ZipPlace place, find(name));
  const Entry& entry = entries_.find(name)->second;
  if (entry.checksum == 0) return ok();
  constexpr std::uint64_t kPiece = 1 << 20;
  boost::crc_32_type checksum;
  for (std::uint64_t done = 0; done < place.bytes; done += kPiece) {
    BOOST_OUTCOME_TRY(const std::string piece,
                      read_bytes(*file_, place.offset + done, std::min(kPiece, place.bytes - done)));
    checksum.process_bytes(piece.data(), piece.size());
  }
  if (checksum.checksum() == entry.checksum) return ok();
  return wrong(*file_,
               fmt::format("{} in the zip archive has the CRC-32 {:08x}, but the archive records {:08x}",
                           quoted_name(name), checksum.checksum(), entry.checksum),
               place.offset);
}

}  // namespace ggufmill::huggingface
