#pragma once
// Checks whether outputs match the records of a journal.

#include <atomic>
#include <span>
#include <vector>

#include "pipeline/io/output_store.h"
#include "pipeline/journal/journal.h"

namespace ggufmill {

struct HeldUnits {
  std::vector<bool> units;  // for each unit of the plan: it has a record, and the bytes in all of its places match it
  std::size_t lost = 0;     // number of units that have a record, but do not match it
};
// Reads all bytes of the units that have a record, on `threads` threads; if a unit has several records, the last one
// counts. `read` reads the files of all outputs, in order. Records of units that the plan does not have are ignored.
// Returns kInterrupted if `*stop` is set.
Result<HeldUnits> find_held(const Plan& plan, const FileReader& read, std::span<const JournalText::Record> records,
                            unsigned threads, const std::atomic<bool>* stop);

// Same for the files of a store, which is asked what it holds if it cannot be read; what it does not hold then does not
// count as lost.
Result<HeldUnits> find_held(const Plan& plan, const OutputStore& store, std::span<const JournalText::Record> records,
                            unsigned threads, const std::atomic<bool>* stop);

// Checks that complete files contain the bytes that a run has written: exit code 6 if the bytes of a unit do not match
// its record, or if it has no record.
Status check_units(const Plan& plan, const FileReader& read, std::span<const JournalText::Record> records,
                   unsigned threads, const std::atomic<bool>* stop);
// Same for the bytes outside of the units: headers, and zeros between tensors.
Status check_frames(const Plan& plan, const FileReader& read, const std::atomic<bool>* stop);

}  // namespace ggufmill
