#pragma once
// Whether outputs hold what the records of a journal say.

#include <atomic>
#include <span>
#include <vector>

#include "pipeline/io/output_store.h"
#include "pipeline/journal/journal.h"

namespace ggufmill {

struct HeldUnits {
  std::vector<bool> units;  // of each of the plan: it has a record, and all of its places hold what that says
  std::size_t lost = 0;     // units that have a record, and do not
};
// Reads all bytes of the units that have a record, the last of each, on so many threads; `read`: of the files of all
// outputs, in order. Other numbers than the plan's are passed over. With `stop` set: kInterrupted.
Result<HeldUnits> find_held(const Plan& plan, const FileReader& read, std::span<const JournalText::Record> records,
                            unsigned threads, const std::atomic<bool>* stop);

// Whether files that are whole hold what a run has written: exit code 6 where the bytes of a unit are not those of its
// record, or it has none.
Status check_units(const Plan& plan, const FileReader& read, std::span<const JournalText::Record> records,
                   unsigned threads, const std::atomic<bool>* stop);
// The same of what is beside the units: headers, and zeros between tensors.
Status check_frames(const Plan& plan, const FileReader& read, const std::atomic<bool>* stop);

}  // namespace ggufmill
