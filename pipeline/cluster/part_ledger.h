#pragma once
// Records which units of a part are done.

#include <string>
#include <vector>

#include "pipeline/cluster/cluster_job.h"
#include "pipeline/core/lifetime.h"
#include "pipeline/io/ledger.h"
#include "pipeline/io/platform/files.h"

namespace ggufmill {

// Each attempt has a separate journal, because two attempts at a part may be alive at the same time. An attempt starts
// by reading the other attempts' journals, reads the outputs back to verify them, and then removes those journals. (An
// attempt whose journal is removed continues writing to a file that nobody will read. If its work is needed again, its
// units are redone.)
class PartLedger final : public Ledger {
 public:
  // `plan` and `job` must outlive the ledger.
  PartLedger(GGUFMILL_OUTLIVES_RESULT const Plan& plan, GGUFMILL_OUTLIVES_RESULT const ClusterJob& job,
             std::size_t part, const std::string& attempt)
      : plan_(plan), job_(job), part_(part), attempt_(attempt), records_(plan.units.size()), done_(plan.units.size()) {}

  Status begin(const OutputStore& store, unsigned threads, const std::atomic<bool>* stop) override;
  bool is_done(std::size_t unit) const override { return done_[unit]; }
  bool wants_checksums() const override { return true; }
  Status done(std::size_t unit, std::span<const std::uint64_t> checksums) override;
  bool keeps(const Error&) override { return true; }

  std::size_t units_kept() const { return units_kept_; }
  // Number of units done by earlier attempts and this one. Thread-safe.
  std::size_t units_done() const { return units_done_; }
  std::size_t units_lost() const { return units_lost_; }  // units with a record but without the bytes
  // Returns the records of all units of the part. Call it only when all units are done.
  std::vector<JournalText::Record> records() const;
  // Removes all journals of the part. Call it when the part is done and no attempt will resume it.
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
  std::string line_;                          // the journal's first line
  std::vector<JournalText::Record> records_;  // one per unit of the plan
  std::vector<bool> done_;
  std::size_t units_kept_ = 0, units_lost_ = 0;
  std::atomic<std::size_t> units_done_{0};
};

}  // namespace ggufmill
