#include "pipeline/journal/read_back.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "pipeline/core/text.h"
#include "pipeline/io/source_path.h"
#include "pipeline/io/threads.h"
#include "pipeline/plan/slabs.h"

namespace ggufmill {
namespace {

constexpr std::size_t kReadBytes = 1 << 20;

// `first_files` has, for each output, the index of its first file in the store.
Result<bool> is_held(const Plan& plan, const FileReader& read, const JournalText::Record& record,
                     const std::vector<std::size_t>& first_files, std::vector<std::byte>& buffer) {
  const Unit& unit = plan.units[record.unit];
  const Step& step = plan.steps[unit.step];
  if (record.checksums.size() != step.encodings.size()) return false;
  const bool is_copied = StepLayout(plan, step).copies_only();
  for (std::size_t i = 0; i < step.encodings.size(); ++i) {
    const Encoding& encoding = step.encodings[i];
    const std::uint64_t row = row_bytes(*encoding.type, step.expression->shape), bytes = unit.rows * row;
    const std::uint64_t piece = is_copied ? copied_piece_bytes(*step.expression) : row;
    const std::uint64_t at_once = std::max<std::uint64_t>(kReadBytes / piece, 1) * piece;
    for (const Place& place : encoding.places) {
      std::uint64_t sum = 0;
      for (std::uint64_t done = 0; done < bytes; done += at_once) {
        buffer.resize(std::min(at_once, bytes - done));
        BOOST_OUTCOME_TRY(
            read(first_files[place.output] + place.file, place.offset + unit.first_row * row + done, buffer));
        sum += checksum(buffer, piece, done / piece);
      }
      if (sum != record.checksums[i]) return false;
    }
  }
  return true;
}

Error changed_since(const std::string& path, std::string what) {
  if (is_address(path))
    return {ExitCode::kIo, path, "what the server returns is not what was written", std::move(what),
            "run the same command again to compare once more; or find out what changes the object, and write it again "
            "with --discard and then --overwrite"};
  return {ExitCode::kIo, path, "another program changed the file while it was being written", std::move(what),
          "find out what else writes in this folder, and run the job again"};
}

// Returns the path of the first file that contains part of the unit.
std::string first_file(const Plan& plan, const Unit& unit) {
  for (const Encoding& encoding : plan.steps[unit.step].encodings)
    for (const Place& place : encoding.places) return plan.outputs[place.output].files[place.file].path;
  return {};
}

// Returns the index of the first file of each output in the store.
std::vector<std::size_t> first_files_of(const Plan& plan) {
  std::vector<std::size_t> first_files;
  std::size_t files = 0;
  for (const PlannedOutput& output : plan.outputs) {
    first_files.push_back(files);
    files += output.files.size();
  }
  return first_files;
}

}  // namespace

Result<HeldUnits> find_held(const Plan& plan, const OutputStore& store, std::span<const JournalText::Record> records,
                            unsigned threads, const std::atomic<bool>* stop) {
  if (store.is_readable())
    return find_held(
        plan, [&](std::size_t i, std::uint64_t at, std::span<std::byte> into) { return store.read(i, at, into); },
        records, threads, stop);
  const std::vector<std::size_t> first_files = first_files_of(plan);
  const auto holds = [&](const Unit& unit) {
    const Step& step = plan.steps[unit.step];
    return std::ranges::all_of(step.encodings, [&](const Encoding& encoding) {
      const std::uint64_t row = row_bytes(*encoding.type, step.expression->shape);
      return std::ranges::all_of(encoding.places, [&](const Place& place) {
        return store.holds(first_files[place.output] + place.file, place.offset + unit.first_row * row,
                           unit.rows * row);
      });
    });
  };
  HeldUnits held;
  held.units.resize(plan.units.size());
  for (const JournalText::Record& record : records)
    if (record.unit < held.units.size()) held.units[record.unit] = holds(plan.units[record.unit]);
  return held;
}

Result<HeldUnits> find_held(const Plan& plan, const FileReader& read, std::span<const JournalText::Record> records,
                            unsigned threads, const std::atomic<bool>* stop) {
  std::vector<const JournalText::Record*> last(plan.units.size());
  for (const JournalText::Record& record : records)
    if (record.unit < last.size()) last[record.unit] = &record;
  const std::vector<std::size_t> first_files = first_files_of(plan);
  HeldUnits held;
  held.units.resize(last.size());
  std::mutex mutex;  // guards `held`
  BOOST_OUTCOME_TRY(for_each_on_threads(threads, last.size(), [&](std::size_t unit, auto& buffer) -> Status {
    if (stop && *stop) return interrupted();
    if (!last[unit]) return ok();
    BOOST_OUTCOME_TRY(const bool there, is_held(plan, read, *last[unit], first_files, buffer));
    const std::lock_guard lock(mutex);
    held.units[unit] = there;
    if (!there) ++held.lost;
    return ok();
  }));
  return held;
}

Status check_units(const Plan& plan, const FileReader& read, std::span<const JournalText::Record> records,
                   unsigned threads, const std::atomic<bool>* stop) {
  BOOST_OUTCOME_TRY(const HeldUnits held, find_held(plan, read, records, threads, stop));
  const auto lost = std::ranges::find(held.units, false);
  if (lost == held.units.end()) return ok();
  const Unit& unit = plan.units[static_cast<std::size_t>(lost - held.units.begin())];
  return changed_since(first_file(plan, unit), fmt::format("tensor {}, rows {} to {}, is not what was written",
                                                           quoted_name(plan.steps[unit.step].name), unit.first_row,
                                                           unit.first_row + unit.rows - 1));
}

Status check_frames(const Plan& plan, const FileReader& read, const std::atomic<bool>* stop) {
  std::size_t index = 0;
  std::vector<std::byte> buffer;
  const auto is_text = [&](std::uint64_t at, std::string_view text) -> Result<bool> {
    for (std::uint64_t done = 0; done < text.size(); done += buffer.size()) {
      buffer.resize(std::min<std::uint64_t>(kReadBytes, text.size() - done));
      BOOST_OUTCOME_TRY(read(index, at + done, buffer));
      if (std::memcmp(buffer.data(), text.data() + done, buffer.size()) != 0) return false;
    }
    return true;
  };
  const auto is_zero = [&](std::uint64_t at, std::uint64_t end) -> Result<bool> {
    for (; at < end; at += buffer.size()) {
      buffer.resize(std::min<std::uint64_t>(kReadBytes, end - at));
      BOOST_OUTCOME_TRY(read(index, at, buffer));
      if (!std::ranges::all_of(buffer, [](std::byte byte) { return byte == std::byte{0}; })) return false;
    }
    return true;
  };
  for (const PlannedOutput& output : plan.outputs)
    for (const OutputFile& file : output.files) {
      if (stop && *stop) return interrupted();
      BOOST_OUTCOME_TRY(bool is_right, is_text(0, file.header));
      std::uint64_t end = file.header.size();
      for (const Placement& tensor : file.tensors) {
        if (!is_right) break;
        BOOST_OUTCOME_TRY(is_right, is_zero(end, tensor.offset));
        end = tensor.offset + tensor.bytes;
      }
      if (is_right) {
        BOOST_OUTCOME_TRY(is_right, is_zero(end, file.bytes));
      }
      if (!is_right)
        return changed_since(file.path, "its header or the padding between its tensors is not what was written");
      ++index;
    }
  return ok();
}

}  // namespace ggufmill
