#pragma once
// The journal of a run: a file next to its first output that records which units are done. A run that was killed leaves
// the journal and its unfinished outputs behind, and a later run of the same plan resumes from there.
//
// A unit recorded in the journal counts as done only after its bytes have been read back from the outputs and match the
// recorded checksums, or after a store that cannot be read before it publishes has confirmed that it holds them.
// Nothing therefore has to reach the disk in any particular order during the run: data lost in a crash or a power
// failure, or damaged, is written again.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/core/lifetime.h"
#include "pipeline/io/journal_file.h"
#include "pipeline/io/ledger.h"
#include "pipeline/plan/plan.h"

namespace ggufmill {

// The contents of a journal: a line of JSON {format, version, ggufmill, identity, units, sources: [{path, bytes,
// header_hash, modified, changed}]}, followed by records in the machine's byte order: u32 unit, u32 count, `count`
// checksums of 64 bits, and XXH3 of all that, with the XXH3 of the first line as its seed. The record of unit 2^32 - 1
// contains the device and inode of every output file instead of checksums: all files are complete, and about to be
// renamed.
struct JournalText {
  struct Record {
    std::uint32_t unit = 0;
    std::vector<std::uint64_t> checksums;
  };
  std::string ggufmill, identity;  // version of ggufmill; identity of the plan
  std::uint64_t units = 0;
  std::vector<SourceFile> sources;
  std::vector<std::int64_t> inode_times;  // of the sources, as in the plan
  std::vector<Record> done;
  std::vector<FileId> sealed;
  std::uint64_t bytes = 0;  // up to the end of the last complete record
  bool is_damaged = false;  // more follows than a truncated record, which is how the journal of a killed run ends
};
// Exit code 4 if the first line is not that of a journal of this version; `path` is for messages.
Result<JournalText> read_journal(std::string_view text, const std::string& path);

// Returns the first line, including its newline, of the journal of a run of the plan.
std::string journal_header(const Plan& plan, const std::string& identity);
// Returns a record for a journal with the first line `line`.
std::string journal_record(std::uint32_t unit, std::span<const std::uint64_t> numbers, std::string_view line);

// Upper bound on the length of a journal of the plan, even if each of its units were recorded twice; no more than this
// is read from an existing journal.
std::uint64_t most_journal_bytes(const Plan& plan);

// Returns the path of the journal, next to the first output if the outputs are local files; empty for a plan without
// outputs, and for outputs in a store that keeps no journal (StoreScheme::journal_path).
std::string journal_path(const Plan& plan, const std::string& identity);

// Returns true if a run was killed while it published its files, whose identities are `sealed`, in order: all exist,
// and some have their final names.
bool is_half_published(const Plan& plan, const std::string& identity, std::span<const FileId> sealed);

class StoreScheme;

class Journal final : public Ledger {
 public:
  // Opens what an earlier run of the plan left, if it is usable. A journal that is not owned exclusively by this user
  // (own_file.h) is left untouched, and this run keeps no journal: warnings() reports it. Exit code 75 if another
  // process is running the same plan. The plan must outlive the journal.
  static Result<std::unique_ptr<Journal>> open(GGUFMILL_OUTLIVES_RESULT const Plan& plan);
  // Starts over, without a file: the state of this run is kept in memory only.
  void forget();

  // Returns true if the outputs that an earlier run left are to be attached to.
  bool goes_on() const { return goes_on_; }
  // Reason why the leftovers of an earlier run cannot be used; empty if they can, or if there are none.
  const std::string& restart_reason() const { return restart_reason_; }
  // Identities of all output files in order, if an earlier run had completed them all and some of them already have
  // their final names; else empty.
  const std::vector<FileId>& half_published() const { return half_published_; }
  // Number of units that an earlier run had done; valid after begin().
  std::size_t units_kept() const { return units_kept_; }
  // Number of recorded units whose bytes did not match the checksums.
  std::size_t units_damaged() const { return units_damaged_; }
  // Problems with the journal itself, which never stop a run.
  const std::vector<std::string>& warnings() const { return warnings_; }

  // Reads back the units that the earlier run has recorded.
  Status begin(const OutputStore& store, unsigned threads, const std::atomic<bool>* stop) override;
  bool is_done(std::size_t unit) const override { return done_[unit]; }
  bool wants_checksums() const override { return true; }
  Status done(std::size_t unit, std::span<const std::uint64_t> checksums) override;
  Status sealed(std::span<const FileId> files) override;
  bool keeps(const Error& error) override;

  // Checks the outputs after they are sealed: always the bytes between units, and also the units if `reads_all` is set.
  // Exit code 6 if something else has changed them. `read` is as for check_units().
  Status check(const FileReader& read, bool reads_all, unsigned threads, const std::atomic<bool>* stop);

  bool was_kept() const { return was_kept_; }
  std::size_t units_done() const { return units_done_; }
  // Removes the journal, because the run is over or starts over.
  void remove();

 private:
  explicit Journal(const Plan& plan, std::string identity);
  Status take();
  std::string why_of_no_use(std::string_view text);
  Status start();
  void note(const Status& status);
  Status append(std::uint32_t unit, std::span<const std::uint64_t> numbers);

  const Plan& plan_;
  const StoreScheme* const store_;  // null if the outputs have no store, or several
  const std::string identity_;
  JournalFile file_;  // its path is empty if the store of the outputs keeps no journal
  JournalText recorded_;
  std::vector<JournalText::Record> records_;  // of all units that are done
  std::vector<FileId> half_published_;
  std::vector<bool> done_;
  std::uint64_t end_ = 0, seed_ = 0;  // end of the file; seed of its records
  bool goes_on_ = false, was_kept_ = false, is_written_ = false;
  bool has_file_ = true;     // or will have one, once it begins
  bool is_spoiled_ = false;  // a later run would not repair the outputs
  std::string restart_reason_;
  std::vector<std::string> warnings_;
  std::size_t units_kept_ = 0, units_damaged_ = 0, units_done_ = 0;
};

}  // namespace ggufmill
