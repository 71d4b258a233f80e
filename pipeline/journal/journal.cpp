#include "pipeline/journal/journal.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstring>

#include "pipeline/core/json.h"
#include "pipeline/core/text.h"
#include "pipeline/io/own_file.h"
#include "pipeline/io/store_scheme.h"
#include "pipeline/io/temporary_file.h"
#include "pipeline/journal/read_back.h"
#include "pipeline/plan/written.h"

namespace ggufmill {
namespace {

namespace json = boost::json;

constexpr std::string_view kFormat = "ggufmill journal";
constexpr int kVersion = 1;
constexpr std::uint32_t kSealed = ~std::uint32_t{0};
constexpr std::uint64_t kMaxHeaderBytes = 16 << 20;

template <class Number>
void put(std::string& bytes, Number number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

template <class Number>
Number get(std::string_view bytes, std::size_t at) {
  Number number;
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

std::string record_of(std::uint32_t unit, std::span<const std::uint64_t> numbers, std::uint64_t seed) {
  std::string record;
  put(record, unit);
  put(record, static_cast<std::uint32_t>(numbers.size()));
  for (const std::uint64_t number : numbers) put(record, number);
  put(record, XXH3_64bits_withSeed(record.data(), record.size(), seed));
  return record;
}

Status read_header(const json::value& header, JournalText& into) {
  const auto wrong = [] { return input_error({}, "its first line is not a journal header"); };
  if (json_string(header, "format") != kFormat) return wrong();
  const json::value* version = json_member(header, "version");
  if (!version || *version != kVersion) return input_error({}, "its version is not supported");
  const json::value* units = json_member(header, "units");
  const json::array* sources = json_array(header, "sources");
  if (!units || !units->is_int64() || units->get_int64() < 0 || !sources) return wrong();
  into.units = static_cast<std::uint64_t>(units->get_int64());
  into.ggufmill = json_string(header, "ggufmill").value_or("");
  into.identity = json_string(header, "identity").value_or("");
  for (const json::value& source : *sources) {
    const json::value *bytes = json_member(source, "bytes"), *modified = json_member(source, "modified");
    if (!bytes || !bytes->is_int64() || !modified || !modified->is_int64()) return wrong();
    const json::value* inode_time = json_member(source, "changed");
    into.sources.push_back({std::string(json_string(source, "path").value_or("")),
                            static_cast<std::uint64_t>(bytes->get_int64()), 0, modified->get_int64()});
    into.inode_times.push_back(inode_time && inode_time->is_int64() ? inode_time->get_int64() : 0);
  }
  return ok();
}

constexpr std::size_t kFixedBytes = 2 * sizeof(std::uint32_t) + sizeof(std::uint64_t);  // of a record

std::uint64_t bytes_of_record(std::string_view begin) {
  return kFixedBytes + std::uint64_t{get<std::uint32_t>(begin, sizeof(std::uint32_t))} * sizeof(std::uint64_t);
}

// Returns true if `rest` is empty or the beginning of a record.
bool is_cut_off(std::string_view rest) {
  constexpr std::uint64_t kMaxRecordBytes = 16 << 20;
  if (rest.size() < kFixedBytes) return true;
  return bytes_of_record(rest) > rest.size() && bytes_of_record(rest) <= kMaxRecordBytes;
}

// Reads the records up to the first that is incomplete or damaged.
void read_records(std::string_view text, std::uint64_t seed, JournalText& into) {
  while (text.size() - into.bytes >= kFixedBytes) {
    const std::string_view rest = text.substr(into.bytes);
    const auto unit = get<std::uint32_t>(rest, 0), count = get<std::uint32_t>(rest, sizeof(std::uint32_t));
    const std::uint64_t bytes = bytes_of_record(rest);
    if (bytes > rest.size()) return;
    const std::size_t end = bytes - sizeof(std::uint64_t);
    if (get<std::uint64_t>(rest, end) != XXH3_64bits_withSeed(rest.data(), end, seed)) return;
    std::vector<std::uint64_t> numbers(count);
    if (count != 0) std::memcpy(numbers.data(), rest.data() + 2 * sizeof(std::uint32_t), count * sizeof(std::uint64_t));
    if (unit == kSealed) {
      into.sealed.clear();
      for (std::size_t i = 0; i + 1 < numbers.size(); i += 2) into.sealed.push_back({numbers[i], numbers[i + 1]});
    } else {
      into.sealed.clear();  // a run that resumed from there
      into.done.push_back({unit, std::move(numbers)});
    }
    into.bytes += bytes;
  }
}

std::vector<std::string> paths_of(const Plan& plan) {
  std::vector<std::string> paths;
  for (const PlannedOutput& output : plan.outputs)
    for (const OutputFile& file : output.files) paths.push_back(file.path);
  return paths;
}

const StoreScheme* scheme_of(const Plan& plan) {
  const auto scheme = find_store_scheme(stored_files(plan));
  return scheme ? scheme.value() : nullptr;
}

}  // namespace

Result<JournalText> read_journal(std::string_view text, const std::string& path) {
  const auto at = [&](Error error) {
    error.where = path;
    return error;
  };
  const std::size_t line = text.substr(0, kMaxHeaderBytes).find('\n');
  if (line == text.npos) return at(input_error({}, "its first line is not a journal header"));
  BOOST_OUTCOME_TRY(const json::value header, parse_json(path, text.substr(0, line)));
  JournalText journal;
  if (const Status read = read_header(header, journal); !read) return at(read.error());
  journal.bytes = line + 1;
  read_records(text, XXH3_64bits(text.data(), line + 1), journal);
  journal.is_damaged = !is_cut_off(text.substr(journal.bytes));
  return journal;
}

std::string journal_header(const Plan& plan, const std::string& identity) {
  json::array sources;
  for (std::size_t i = 0; i < plan.sources.size(); ++i) {
    const SourceFile& source = *plan.sources[i];
    sources.push_back({{"path", is_utf8(source.path) ? source.path : quoted_name(source.path)},
                       {"bytes", source.bytes},
                       {"header_hash", fmt::format("{:016x}", source.header_hash)},
                       {"modified", source.modified},
                       {"changed", i < plan.inode_times.size() ? plan.inode_times[i] : 0}});
  }
  return json::serialize(json::object{{"format", kFormat},
                                      {"version", kVersion},
                                      {"ggufmill", GGUFMILL_VERSION},
                                      {"identity", identity},
                                      {"units", plan.units.size()},
                                      {"sources", sources}}) +
         "\n";
}

std::string journal_record(std::uint32_t unit, std::span<const std::uint64_t> numbers, std::string_view line) {
  return record_of(unit, numbers, XXH3_64bits(line.data(), line.size()));
}

std::uint64_t most_journal_bytes(const Plan& plan) {
  std::uint64_t numbers = 0, files = 0;
  for (const Unit& unit : plan.units) numbers += plan.steps[unit.step].encodings.size();
  for (const PlannedOutput& output : plan.outputs) files += output.files.size();
  const std::uint64_t records = (plan.units.size() + 1) * kFixedBytes + (numbers + 2 * files) * sizeof(std::uint64_t);
  return kMaxHeaderBytes + 2 * records;
}

std::string journal_path(const Plan& plan, const std::string& identity) {
  const std::vector<StoredFile> files = stored_files(plan);
  const StoreScheme* const store = scheme_of(plan);
  return files.empty() || !store ? "" : store->journal_path(files.front().path, identity);
}

bool is_half_published(const Plan& plan, const std::string& identity, std::span<const FileId> sealed) {
  const std::vector<StoredFile> files = stored_files(plan);
  const StoreScheme* const store = scheme_of(plan);
  if (!store || sealed.size() != files.size()) return false;
  std::size_t named = 0;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const SealedFile place = store->find_sealed(files[i], identity, sealed[i]);
    if (place == SealedFile::kMissing) return false;
    if (place == SealedFile::kPublished) ++named;
  }
  return named != 0;
}

Journal::Journal(const Plan& plan, std::string identity)
    : plan_(plan),
      store_(scheme_of(plan)),
      identity_(std::move(identity)),
      file_(journal_path(plan, identity_)),
      done_(plan.units.size()) {}

Result<std::unique_ptr<Journal>> Journal::open(const Plan& plan) {
  std::unique_ptr<Journal> journal(new Journal(plan, identity_of(plan)));
  BOOST_OUTCOME_TRY(journal->take());
  return journal;
}

Status Journal::take() {
  if (file_.path().empty()) return ok();
  BOOST_OUTCOME_TRY(const JournalFile::Found found, file_.open_existing());
  if (!found.strange.empty()) {
    forget();
    warnings_.push_back(fmt::format(
        "{}: this file is not used ({}), so there is no journal: if this run is interrupted, it starts over",
        file_.path(), found.strange));
  }
  if (found.is_in_use) return being_written(paths_of(plan_).front());
  if (!file_.is_open()) return ok();
  BOOST_OUTCOME_TRY(const std::string text, file_.read(most_journal_bytes(plan_)));
  restart_reason_ = why_of_no_use(text);
  goes_on_ = restart_reason_.empty();
  if (!goes_on_) recorded_ = {};
  return ok();
}

// Returns an empty string if the journal is usable, else the reason why it is not.
std::string Journal::why_of_no_use(std::string_view text) {
  auto read = read_journal(text, file_.path());
  if (!read) return "its journal cannot be used: " + read.error().what;
  recorded_ = std::move(read).value();
  if (recorded_.identity != identity_ || recorded_.units != plan_.units.size())
    return "its journal belongs to another plan";
  if (const std::string source = touched_source(plan_, recorded_.sources, recorded_.inode_times); !source.empty())
    return fmt::format("{}: {}", quoted_name(source), kInodeChanged);
  if (is_half_published(plan_, identity_, recorded_.sealed)) {
    half_published_ = recorded_.sealed;
    return {};
  }
  for (const StoredFile& file : stored_files(plan_))
    if (std::string why = store_->why_not_attachable(file, identity_); !why.empty()) return why;
  if (recorded_.is_damaged)
    warnings_.push_back(fmt::format("{}: the journal is damaged at byte {:#x}: work recorded after that is redone",
                                    file_.path(), recorded_.bytes));
  seed_ = XXH3_64bits(text.data(), text.find('\n') + 1);
  end_ = recorded_.bytes;
  return {};
}

// A journal that cannot be written forces a later run to start over, which is no reason to stop this one.
void Journal::note(const Status& status) {
  if (status) return;
  is_written_ = false;
  warnings_.push_back(fmt::format("{}: {}: if this run is interrupted, some finished work will be redone", file_.path(),
                                  status.error().what));
}

Status Journal::begin(const OutputStore& store, unsigned threads, const std::atomic<bool>* stop) {
  if (file_.path().empty() || !has_file_) return ok();
  if (!goes_on_) {
    note(start());
    return ok();
  }
  is_written_ = true;
  note(file_.truncate(end_));
  BOOST_OUTCOME_TRY(auto held, find_held(plan_, store, recorded_.done, threads, stop));
  done_ = std::move(held.units);
  records_ = recorded_.done;
  std::erase_if(records_, [&](const auto& record) { return record.unit >= done_.size() || !done_[record.unit]; });
  units_damaged_ = held.lost;
  units_kept_ = static_cast<std::size_t>(std::ranges::count(done_, true));
  return ok();
}

Status Journal::start() {
  const std::string header = journal_header(plan_, identity_);
  BOOST_OUTCOME_TRY(const bool is_created, file_.create());
  if (!is_created) return being_written(paths_of(plan_).front());
  BOOST_OUTCOME_TRY(file_.write(0, header));
  end_ = header.size();
  seed_ = XXH3_64bits(header.data(), header.size());
  is_written_ = true;
  return file_.sync_folder();  // so that the files are found after a power failure
}

Status Journal::append(std::uint32_t unit, std::span<const std::uint64_t> numbers) {
  const std::string record = record_of(unit, numbers, seed_);
  BOOST_OUTCOME_TRY(file_.write(end_, record));
  end_ += record.size();
  return ok();
}

Status Journal::done(std::size_t unit, std::span<const std::uint64_t> checksums) {
  ++units_done_;
  records_.push_back({static_cast<std::uint32_t>(unit), {checksums.begin(), checksums.end()}});
  if (is_written_) note(append(static_cast<std::uint32_t>(unit), checksums));
  return ok();
}

Status Journal::sealed(std::span<const FileId> files) {
  if (!is_written_) return ok();
  std::vector<std::uint64_t> numbers;
  for (const FileId& file : files) numbers.insert(numbers.end(), {file.device, file.inode});
  note([&]() -> Status {
    BOOST_OUTCOME_TRY(append(kSealed, numbers));
    BOOST_OUTCOME_TRY(file_.sync());
    return file_.sync_folder();
  }());
  return ok();
}

Status Journal::check(const FileReader& read, bool reads_all, unsigned threads, const std::atomic<bool>* stop) {
  if (reads_all) {
    BOOST_OUTCOME_TRY(check_units(plan_, read, records_.empty() ? recorded_.done : records_, threads, stop));
  }
  const Status frames = check_frames(plan_, read, stop);
  is_spoiled_ = !frames && frames.error().code != ExitCode::kInterrupted;
  return frames;
}

// Outputs that a second run cannot repair are not kept for one.
bool Journal::keeps(const Error& error) {
  const bool in_vain = is_spoiled_ || error.code == ExitCode::kBadInput || error.code == ExitCode::kInternal;
  was_kept_ = !in_vain && file_.is_there() && (goes_on_ || units_done_ != 0);
  if (!was_kept_) remove();
  return was_kept_;
}

void Journal::forget() {
  remove();
  has_file_ = goes_on_ = false;
  recorded_ = {};
}

void Journal::remove() {
  if (!file_.is_open()) return;
  file_.remove();
  is_written_ = false;
}

}  // namespace ggufmill
