#pragma once
// Which units of a part are done.

#include <string>
#include <vector>

#include "pipeline/cluster/cluster_job.h"
#include "pipeline/io/descriptor.h"
#include "pipeline/io/ledger.h"

namespace ggufmill {

// A journal of each attempt's own: two attempts at a part may be alive at once. An attempt begins with what the
// journals of the others say and the outputs hold, so that nothing has to be believed, and removes them. (An attempt
// whose journal is removed goes on writing to a file that nobody will read: should it be needed again, its units are
// done anew.)
class PartLedger final : public Ledger {
 public:
  // All outlive it.
  PartLedger(const Plan& plan, const ClusterJob& job, std::size_t part, const std::string& attempt)
      : plan_(plan), job_(job), part_(part), attempt_(attempt), records_(plan.units.size()), done_(plan.units.size()) {}

  Status begin(const OutputStore& store, unsigned threads, const std::atomic<bool>* stop) override;
  bool is_done(std::size_t unit) const override { return done_[unit]; }
  bool wants_checksums() const override { return true; }
  Status done(std::size_t unit, std::span<const std::uint64_t> checksums) override;
  bool keeps(const Error&) override { return true; }

  std::size_t units_kept() const { return units_kept_; }
  // Of earlier attempts and this one. Thread-safe.
  std::size_t units_done() const { return units_done_; }
  std::size_t units_lost() const { return units_lost_; }  // that had a record, and not its bytes
  // Of each unit of the part, once all are done.
  std::vector<JournalText::Record> records() const;
  // The part is done: nobody will go on with it.
  void remove_journals() const;

 private:
  std::vector<JournalText::Record> read_journals() const;
  Status append(const std::string& text);

  const Plan& plan_;
  const ClusterJob& job_;
  const std::size_t part_;
  const std::string attempt_;
  Descriptor file_;
  std::uint64_t end_ = 0;
  std::string line_;                          // the journal's first
  std::vector<JournalText::Record> records_;  // of each unit of the plan
  std::vector<bool> done_;
  std::size_t units_kept_ = 0, units_lost_ = 0;
  std::atomic<std::size_t> units_done_{0};
};

}  // namespace ggufmill
