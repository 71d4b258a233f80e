#include "pipeline/cluster/part_ledger.h"

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/cluster/part_store.h"
#include "pipeline/core/json.h"
#include "pipeline/io/own_file.h"
#include "pipeline/io/platform/files.h"
#include "pipeline/io/transfer.h"
#include "pipeline/journal/read_back.h"

namespace ggufmill {
namespace {

std::string ending_of(std::size_t part) { return fmt::format("{}.journal.", part); }

}  // namespace

// Reads the records of all journals of the part. Skips journals that cannot be read or belong to another job.
std::vector<JournalText::Record> PartLedger::read_journals() const {
  std::vector<JournalText::Record> records;
  for (const std::string& name : part_files(job_, ending_of(part_))) {
    const std::string path = job_.file("parts/" + name);
    const auto file = InputFile::open(path);
    if (!file) continue;
    std::string text(std::min(file.value()->bytes(), most_journal_bytes(plan_)), '\0');
    if (!file.value()->read(0, std::as_writable_bytes(std::span(text)))) continue;
    auto journal = read_journal(text, path);
    if (!journal || journal.value().identity != job_.key()) continue;
    for (JournalText::Record& record : journal.value().done) records.push_back(std::move(record));
  }
  return records;
}

Status PartLedger::begin(const OutputStore& store, unsigned threads, const std::atomic<bool>* stop) {
  const UnitRange range = job_.range(part_);
  std::vector<JournalText::Record> earlier = read_journals();
  if (auto marker = read_done(job_, part_))  // the part is done but is being run again
    for (JournalText::Record& record : marker->units) earlier.push_back(std::move(record));
  std::erase_if(earlier, [&](const auto& record) { return record.unit < range.first || record.unit >= range.last; });
  BOOST_OUTCOME_TRY(HeldUnits held, find_held(plan_, store, earlier, threads, stop));
  done_ = std::move(held.units);
  units_lost_ = held.lost;
  units_kept_ = static_cast<std::size_t>(std::ranges::count(done_, true));
  units_done_ = units_kept_;
  const std::string name = ending_of(part_) + attempt_, path = job_.file("parts/" + name);
  file_ =
      open_file(kCurrentFolder, path, kOpenWrite | kOpenCreate | kOpenEmpty | kOpenNoFollow | kOpenNoWaiting, kOwnMode);
  if (!file_) return io_error(path, "create the journal", errno);
  line_ = journal_header(plan_, job_.key());
  std::string text = line_;
  for (JournalText::Record& record : earlier)
    if (done_[record.unit]) {
      text += journal_record(record.unit, record.checksums, line_);
      records_[record.unit] = std::move(record);
    }
  end_ = 0;
  BOOST_OUTCOME_TRY(append(text));
  for (const std::string& other : part_files(job_, ending_of(part_)))
    if (other != name) {
      const std::string old = job_.file("parts/" + other);
      remove_file(kCurrentFolder, old);
    }
  return ok();
}

Status PartLedger::append(const std::string& text) {
  BOOST_OUTCOME_TRY(
      write_all(file_.get(), job_.file("parts/" + ending_of(part_) + attempt_), end_, std::as_bytes(std::span(text))));
  end_ += text.size();
  return ok();
}

// A failed write to the journal does not end the part: another attempt may have removed the journal, which NFS reports
// as a stale handle.
Status PartLedger::done(std::size_t unit, std::span<const std::uint64_t> checksums) {
  const auto number = static_cast<std::uint32_t>(unit);
  records_[unit] = {number, {checksums.begin(), checksums.end()}};
  ++units_done_;
  if (file_ && !append(journal_record(number, checksums, line_))) file_ = Descriptor();
  return ok();
}

std::vector<JournalText::Record> PartLedger::records() const {
  const UnitRange range = job_.range(part_);
  return {records_.begin() + static_cast<std::ptrdiff_t>(range.first),
          records_.begin() + static_cast<std::ptrdiff_t>(range.last)};
}

void PartLedger::remove_journals() const {
  for (const std::string& name : part_files(job_, ending_of(part_))) {
    const std::string path = job_.file("parts/" + name);
    remove_file(kCurrentFolder, path);
  }
}

}  // namespace ggufmill
