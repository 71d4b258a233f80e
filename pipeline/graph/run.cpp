#include "pipeline/graph/run.h"

#include "pipeline/core/covariance.h"
#include "pipeline/plan/slabs.h"

namespace ggufmill {
namespace {

constexpr std::chrono::milliseconds kReportInterval{50};

}  // namespace

RunState::RunState(const Plan& plan, const EngineOptions& options, Ledger& ledger, const std::vector<bool>& done)
    : stop_(options.stop), report_(options.progress), ledger_(ledger), reported_(Clock::now()), plan_(plan) {
  std::size_t files = 0;
  for (const PlannedOutput& output : plan.outputs) {
    first_file_.push_back(files);
    files += output.files.size();
  }
  file_bytes_.resize(files);
  progress_of_files_.resize(files);
  progress_.file_bytes = progress_of_files_;
  for (std::size_t unit = 0; unit < done.size(); ++unit)
    if (done[unit]) count(plan.units[unit]);
  before_of_files_ = progress_of_files_;
  progress_.file_bytes_before = before_of_files_;
}

// Counts a unit of an earlier run as progress.
void RunState::count(const Unit& unit) {
  const Step& step = plan_.steps[unit.step];
  progress_.bytes_read += unit.rows * step.expression->row_bytes();
  for (const Encoding& encoding : step.encodings)
    for (const Place& place : encoding.places) {
      const std::uint64_t bytes = unit.rows * row_bytes(*encoding.type, step.expression->shape);
      progress_.bytes_written += bytes;
      progress_of_files_[file_of(place)] += bytes;
    }
}

void RunState::sum_up(Slab& slab) const {
  if (!ledger_.wants_checksums()) return;
  for (SlabPart& part : slab.parts)
    for (std::size_t i = 0; i < part.encoded.size(); ++i)
      part.checksums.push_back(part.checksum(plan_.units[part.rows.unit], i));
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
  std::uint64_t read = part.rows.bytes;
  if (const Expression* compared = part.compared.expression) read += part.rows.rows * compared->row_bytes();
  bytes_read_ += read;
  progress_.bytes_read += read;
  for (std::size_t i = 0; i < part.encoded.size(); ++i)
    for (const Place& place : part.step->encodings[i].encoding->places) {
      progress_.bytes_written += part.encoded_bytes(i).size();
      file_bytes_[file_of(place)] += part.encoded_bytes(i).size();
      progress_of_files_[file_of(place)] += part.encoded_bytes(i).size();
    }
  const Unit& unit = plan_.units[part.rows.unit];
  auto at = units_.find(part.rows.unit);
  if (at == units_.end()) {  // initialized completely before insertion: later slabs add to it
    UnitUnderWay begun{unit.rows * plan_.steps[unit.step].expression->row_bytes(),
                       std::vector<std::uint64_t>(part.checksums.size())};
    at = units_.emplace(part.rows.unit, std::move(begun)).first;
  }
  UnitUnderWay& under_way = at->second;
  for (std::size_t i = 0; i < part.checksums.size(); ++i) under_way.checksums[i] += part.checksums[i];
  under_way.bytes_left -= part.rows.bytes;
  if (under_way.bytes_left != 0) return;
  ++units_done_;
  progress_.tensor = &plan_.steps[unit.step].name;
  const Status status = ledger_.done(part.rows.unit, under_way.checksums);
  units_.erase(at);
  if (!status) fail(0, kWrite, status.error());
}

void RunState::report(bool at_once) {
  const Clock::time_point now = Clock::now();
  if (!report_ || (!at_once && now - reported_ < kReportInterval)) return;
  reported_ = now;
  report_(progress_);
}

Status RunState::status() {
  if (stopped()) return interrupted();
  if (error_) return *error_;
  report(true);
  return ok();
}

Result<std::unique_ptr<RunSources>> RunSources::open(const Plan& plan, IoMode mode, const std::atomic<bool>* stop) {
  auto opened = std::make_unique<RunSources>();
  for (const SourceRef& source : plan.sources) {
    BOOST_OUTCOME_TRY(opened->sources_[source.get()], ByteSource::open(*source, mode, stop));
    if (mode == IoMode::kDirect) {
      BOOST_OUTCOME_TRY(opened->cached_[source.get()], ByteSource::open(*source, IoMode::kStreaming, stop));
    }
  }
  return opened;
}

bool acquire(Run& run, const SlabBatch& batch, std::uint64_t ordinal, Metrics::Used& metrics) {
  const SlabRows& rows = batch.rows.front();
  const StepLayout& layout = *run.steps[rows.step].layout;
  const std::uint64_t matrix_rows = layout.step().expression->shape.dims[1];
  const std::uint64_t matrix = rows.first_row / std::max<std::uint64_t>(matrix_rows, 1);
  return run.metrics.acquire(batch.cost, layout.metrics(), matrix, ordinal, metrics);
}

void make_metric(Run& run, const ForEach& for_each, Metric& metric) noexcept {
  run.state.guard(metric.ordinal, RunState::kTiles, [&]() -> Status {
    if (run.state.skips(metric.ordinal)) return ok();
    const Covariance& covariance = *metric.use.covariance;
    const auto stopped = [&] { return run.state.skips(metric.ordinal); };
    const CovarianceSources sources{
        run.sources.cached(*covariance.sums.source), run.sources.cached(*covariance.correlations.source),
        covariance.held_out == 0 ? nullptr : &run.sources.cached(*covariance.vectors.source)};
    BOOST_OUTCOME_TRY(make_metric(run.kernels.covariance(), sources, for_each, stopped, metric));
    if (!metric.is_usable && !stopped()) run.metrics.failed(metric);
    return ok();
  });
}

Status RunSources::check_unchanged() const {
  for (const auto& [described, source] : sources_) {
    BOOST_OUTCOME_TRY(source->check_unchanged());
  }
  return ok();
}

}  // namespace ggufmill
