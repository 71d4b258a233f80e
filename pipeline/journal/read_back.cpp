#include "pipeline/journal/read_back.h"

#include <algorithm>
#include <mutex>

#include "pipeline/io/threads.h"
#include "pipeline/plan/slabs.h"

namespace ggufmill {
namespace {

constexpr std::size_t kReadBytes = 1 << 20;

// `first_files`: of each output, index into the store's.
Result<bool> is_held(const Plan& plan, const OutputStore& store, const JournalText::Record& record,
                     const std::vector<std::size_t>& first_files, std::vector<std::byte>& buffer) {
  const Unit& unit = plan.units[record.unit];
  const Step& step = plan.steps[unit.step];
  if (record.checksums.size() != step.encodings.size()) return false;
  const bool is_copied = StepCost(plan, step).copies_only();
  for (std::size_t i = 0; i < step.encodings.size(); ++i) {
    const Encoding& encoding = step.encodings[i];
    const std::uint64_t row = row_bytes(*encoding.type, step.expression->shape), bytes = unit.rows * row;
    const std::uint64_t piece = is_copied ? copied_piece_bytes(*encoding.type) : row;
    const std::uint64_t at_once = std::max<std::uint64_t>(kReadBytes / piece, 1) * piece;
    for (const Place& place : encoding.places) {
      std::uint64_t sum = 0;
      for (std::uint64_t done = 0; done < bytes; done += at_once) {
        buffer.resize(std::min(at_once, bytes - done));
        BOOST_OUTCOME_TRY(
            store.read(first_files[place.output] + place.file, place.offset + unit.first_row * row + done, buffer));
        sum += checksum(buffer, piece, done / piece);
      }
      if (sum != record.checksums[i]) return false;
    }
  }
  return true;
}

}  // namespace

Result<HeldUnits> find_held(const Plan& plan, const OutputStore& store, std::span<const JournalText::Record> records,
                            unsigned threads, const std::atomic<bool>* stop) {
  std::vector<const JournalText::Record*> last(plan.units.size());
  for (const JournalText::Record& record : records)
    if (record.unit < last.size()) last[record.unit] = &record;
  std::vector<std::size_t> first_files;
  std::size_t files = 0;
  for (const PlannedOutput& output : plan.outputs) {
    first_files.push_back(files);
    files += output.files.size();
  }
  HeldUnits held;
  held.units.resize(last.size());
  std::mutex mutex;  // guards `held`
  BOOST_OUTCOME_TRY(for_each_on_threads(threads, last.size(), [&](std::size_t unit, auto& buffer) -> Status {
    if (stop && *stop) return interrupted();
    if (!last[unit]) return ok();
    BOOST_OUTCOME_TRY(const bool there, is_held(plan, store, *last[unit], first_files, buffer));
    const std::lock_guard lock(mutex);
    held.units[unit] = there;
    if (!there) ++held.lost;
    return ok();
  }));
  return held;
}

}  // namespace ggufmill
