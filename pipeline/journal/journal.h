#pragma once
// The journal of a run: a file beside its first output that says which units are done. A run that was killed leaves it
// with its unfinished outputs, and a later run of the same plan goes on from there.
//
// A unit that it names is believed only once its bytes have been read back from the outputs and have the checksums that
// it says. So nothing has to reach the disk in any order while the run goes on: what a crash or a power cut has lost is
// done again, and what is damaged, too.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/io/descriptor.h"
#include "pipeline/io/ledger.h"
#include "pipeline/plan/plan.h"

namespace ggufmill {

// The text of a journal: a line of JSON {format, version, ggufmill, identity, units, sources: [{path, bytes,
// header_hash, modified, changed}]}, then records in the machine's byte order: u32 unit, u32 count, count
// checksums of 64 bits, and XXH3 of all that with the first line's as its seed. The record of unit 2^32 - 1 has device
// and inode of every output file in place of checksums: all are whole, and about to get their names.
struct JournalText {
  struct Record {
    std::uint32_t unit = 0;
    std::vector<std::uint64_t> checksums;
  };
  std::string ggufmill, identity;  // version; of the plan
  std::uint64_t units = 0;
  std::vector<SourceFile> sources;
  std::vector<std::int64_t> inode_times;  // of the sources, as in the plan
  std::vector<Record> done;
  std::vector<FileId> sealed;
  std::uint64_t bytes = 0;  // up to the end of the last whole record
  bool is_damaged = false;  // more follows than a record that is cut off, which is how a run ends that is killed
};
// Exit code 4 where the first line is not that of a journal of this version; `path` is for messages.
Result<JournalText> read_journal(std::string_view text, const std::string& path);

// The first line, with its end, of the journal of a run of the plan.
std::string journal_header(const Plan& plan, const std::string& identity);
// A record, as it follows the first line `line`.
std::string journal_record(std::uint32_t unit, std::span<const std::uint64_t> numbers, std::string_view line);

// No journal of a run of the plan is longer, were each of its units done twice; of what is, no more is read.
std::uint64_t most_journal_bytes(const Plan& plan);

// Beside the first output; empty for a plan without outputs.
std::string journal_path(const Plan& plan, const std::string& identity);

class Journal final : public Ledger {
 public:
  // Takes what an earlier run of the plan left, if it is of use. A journal that is not this user's alone (own_file.h)
  // stays as it is, and this run keeps none: warnings() says so. Exit code 75 where another process runs the same plan
  // now. The plan outlives it.
  static Result<std::unique_ptr<Journal>> open(const Plan& plan);
  // Starts over, without a file: what is done is known to this run alone.
  void forget();

  // Whether the outputs are to be attached to, as an earlier run left them.
  bool goes_on() const { return goes_on_; }
  // Why what an earlier run left is of no use; empty where there is nothing, or it is.
  const std::string& starts_anew_since() const { return starts_anew_since_; }
  // Of each output file in order, where an earlier run had made all whole and some of them have their names; else
  // empty.
  const std::vector<FileId>& half_published() const { return half_published_; }
  // Of units that an earlier run had done, after begin().
  std::size_t units_kept() const { return units_kept_; }
  // That could not be believed.
  std::size_t units_damaged() const { return units_damaged_; }
  // What is wrong with the journal itself, which no run ends for.
  const std::vector<std::string>& warnings() const { return warnings_; }

  // Reads back what the earlier run says it has done.
  Status begin(const OutputStore& store, unsigned threads, const std::atomic<bool>* stop) override;
  bool is_done(std::size_t unit) const override { return done_[unit]; }
  bool wants_checksums() const override { return true; }
  Status done(std::size_t unit, std::span<const std::uint64_t> checksums) override;
  Status sealed(std::span<const FileId> files) override;
  bool keeps(const Error& error) override;

  // Checks the outputs after they are sealed: what lies between units always, and units where `reads_all` is set. Exit
  // code 6 where something else has changed them. `read`: as of check_units().
  Status check(const FileReader& read, bool reads_all, unsigned threads, const std::atomic<bool>* stop);

  bool was_kept() const { return was_kept_; }
  std::size_t units_done() const { return units_done_; }
  // The run is over, or begins anew: there is no journal any more.
  void remove();

 private:
  explicit Journal(const Plan& plan, std::string identity);
  Status take();
  std::string why_of_no_use(std::string_view text);
  bool is_half_published() const;
  bool is_there() const;
  Status start();
  Status sync_folder() const;
  void note(const Status& status);
  Status append(std::uint32_t unit, std::span<const std::uint64_t> numbers);

  const Plan& plan_;
  const std::string identity_, path_;
  Descriptor file_;
  JournalText recorded_;
  std::vector<JournalText::Record> records_;  // of all units that are done
  std::vector<FileId> half_published_;
  std::vector<bool> done_;
  std::uint64_t end_ = 0, seed_ = 0;  // of the file; of its records
  bool goes_on_ = false, was_kept_ = false, is_written_ = false;
  bool has_file_ = true;     // or would, once it begins
  bool is_spoiled_ = false;  // a later run would not mend the outputs
  std::string starts_anew_since_;
  std::vector<std::string> warnings_;
  std::size_t units_kept_ = 0, units_damaged_ = 0, units_done_ = 0;
};

}  // namespace ggufmill
