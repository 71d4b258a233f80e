#include "pipeline/graph/run.h"

namespace ggufmill {
namespace {

constexpr std::chrono::milliseconds kReportInterval{50};

}  // namespace

RunState::RunState(const Plan& plan, const RunOptions& options, Ledger& ledger)
    : stop_(options.stop), report_(options.progress), ledger_(ledger), reported_(Clock::now()), plan_(plan) {
  std::size_t files = 0;
  for (const PlannedOutput& output : plan.outputs) {
    first_file_.push_back(files);
    files += output.files.size();
  }
  file_bytes_.resize(files);
  progress_.file_bytes = file_bytes_;
}

void RunState::fail(std::uint64_t ordinal, std::uint64_t at, Error error) noexcept {
  const std::lock_guard lock(mutex_);
  if (std::pair(ordinal, at) >= failed_at_) return;
  failed_at_ = {ordinal, at};
  failed_ordinal_ = ordinal;
  error_ = std::move(error);
}

void RunState::finished(const Slab& slab) {
  if (spoiled(slab.ordinal)) return;
  guard(slab.ordinal, kWrite, [&] {
    for (const SlabPart& part : slab.parts) finished(part);
    report(false);
  });
}

void RunState::finished(const SlabPart& part) {
  progress_.bytes_read += part.rows.bytes;
  if (const Expression* compared = part.compared.expression)
    progress_.bytes_read += part.rows.rows * compared->row_bytes();
  for (std::size_t i = 0; i < part.encoded.size(); ++i)
    for (const Place& place : part.step->encodings[i].encoding->places) {
      progress_.bytes_written += part.encoded_bytes(i).size();
      file_bytes_[file_of(place)] += part.encoded_bytes(i).size();
    }
  const Unit& unit = plan_.units[part.rows.unit];
  const auto left =
      bytes_left_.emplace(part.rows.unit, unit.rows * plan_.steps[unit.step].expression->row_bytes()).first;
  left->second -= part.rows.bytes;
  if (left->second != 0) return;
  bytes_left_.erase(left);
  ++units_done_;
  progress_.tensor = &plan_.steps[unit.step].name;
  if (const Status status = ledger_.done(part.rows.unit); !status) fail(0, kWrite, status.error());
}

void RunState::report(bool at_once) {
  const Clock::time_point now = Clock::now();
  if (!report_ || (!at_once && now - reported_ < kReportInterval)) return;
  reported_ = now;
  report_(progress_);
}

Status RunState::status() {
  if (stopped()) return interrupted(0, 0);
  if (error_) return *error_;
  report(true);
  return ok();
}

Result<std::unique_ptr<RunSources>> RunSources::open(const Plan& plan, IoMode mode) {
  auto opened = std::make_unique<RunSources>();
  for (const SourceRef& source : plan.sources) {
    BOOST_OUTCOME_TRY(opened->sources_[source.get()], ByteSource::open(*source, mode));
    if (mode == IoMode::kDirect) {
      BOOST_OUTCOME_TRY(opened->cached_[source.get()], ByteSource::open(*source, IoMode::kStreaming));
    }
  }
  return opened;
}

Status RunSources::check_unchanged() const {
  for (const auto& [described, source] : sources_) {
    BOOST_OUTCOME_TRY(source->check_unchanged());
  }
  return ok();
}

}  // namespace ggufmill
