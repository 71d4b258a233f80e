#include "pipeline/api/reports.h"

#include <fmt/format.h>

#include <array>
#include <map>

#include "pipeline/core/text.h"
#include "pipeline/io/store_scheme.h"

namespace ggufmill {
namespace {

ReportTensor tensor_report(const Plan& plan, const PlannedTensor& tensor) {
  ReportTensor described;
  described.name = tensor.name;
  described.shape = tensor.shape;
  described.source_type = tensor.source_type;
  described.type = tensor.type;
  described.fallback_from = tensor.fallback_from;
  described.source_bytes = tensor.source_bytes;
  described.bytes = tensor.bytes;
  described.rule = tensor.reason;
  described.importance = tensor.importance;
  if (plan.report.error) described.state = ErrorState::kExact;
  return described;
}

// Lists the tensors in the order of the output's files; results are filled in later.
ReportOutput output_report(const Plan& plan, const PlannedOutput& output) {
  ReportOutput described;
  described.recipe = output.recipe;
  described.choice = output.choice;
  for (const PlannedTensor& tensor : output.tensors) described.tensors.push_back(tensor_report(plan, tensor));
  for (const OutputFile& file : output.files) described.files.push_back({file.path, file.bytes});
  return described;
}

// `partial`: an earlier run converted some of the rows, and its part of the error is not known.
void put_result(const Encoding& encoding, const TargetResult& result, bool partial, Report& report) {
  for (const Place& place : encoding.places) {
    ReportTensor& described = report.outputs[place.output].tensors[place.tensor];
    described.seconds = result.seconds;
    if (!partial) described.held_out = result.held_out;
    const bool is_known = !partial && !encoding.taken;  // what an earlier output lost is not
    if (!is_known && described.type != described.source_type) described.state = ErrorState::kNotMeasured;
    if (!result.error || partial) continue;
    described.state = ErrorState::kMeasured;
    described.sums = *result.error;
  }
}

constexpr std::size_t kWriteAtOnce = 1 << 20;

// Combines small pieces into larger writes.
class PieceWriter {
 public:
  explicit PieceWriter(OutputStore& store) : store_(store) {}

  void add(std::string_view piece) {
    part_ += piece;
    if (part_.size() >= kWriteAtOnce) flush();
  }
  // Returns the first error of all writes.
  Status finish() {
    flush();
    return status_;
  }

 private:
  void flush() {
    if (status_) status_ = store_.write(0, at_, std::as_bytes(std::span(part_)));
    at_ += part_.size();
    part_.clear();
  }

  OutputStore& store_;
  std::string part_;
  std::uint64_t at_ = 0;
  Status status_ = ok();
};

// Writes a text without holding all of it in memory. `form` is called twice and must produce the same pieces each time.
Status write_pieces(const std::string& path, const std::function<void(const TextSink&)>& form, bool overwrite) {
  std::uint64_t bytes = 0;
  form([&](std::string_view piece) { bytes += piece.size(); });
  BOOST_OUTCOME_TRY(const auto store, create_store({{path, {}, bytes}}, {overwrite}));
  PieceWriter writer(*store);
  form([&](std::string_view piece) { writer.add(piece); });
  BOOST_OUTCOME_TRY(writer.finish());
  BOOST_OUTCOME_TRY(store->seal(std::array{bytes}));
  return store->publish();
}

}  // namespace

std::string describe_fallbacks(const PlannedOutput& output) {
  std::map<std::pair<TypeId, TypeId>, std::pair<const PlannedTensor*, std::size_t>>
      counts;  // the last such tensor, and their number
  std::size_t fallbacks = 0;
  for (const PlannedTensor& tensor : output.tensors) {
    if (!tensor.fallback_from) continue;
    auto& [first, count] = counts[{tensor.fallback_from->id, tensor.type->id}];
    first = &tensor;
    ++count;
    ++fallbacks;
  }
  if (fallbacks == 0) return {};
  std::string types;
  for (const auto& [ids, like] : counts)
    types += fmt::format("{}{} {} -> {}", types.empty() ? "" : ", ", like.second, like.first->fallback_from->name,
                         like.first->type->name);
  return fmt::format("{} of {} fall{} back to another type, because {} rows are not a whole number of blocks: {}",
                     fallbacks, counted(output.tensors.size(), "tensor"), fallbacks == 1 ? "s" : "",
                     fallbacks == 1 ? "its" : "their", types);
}

std::vector<ReportFile> files_of(const std::vector<SourceRef>& sources) {
  std::vector<ReportFile> files;
  files.reserve(sources.size());
  for (const SourceRef& source : sources) files.push_back({source->path, source->bytes});
  return files;
}

void describe_source(const PlannedSource& source, Report& report) {
  report.name = source.name;
  report.architecture = source.architecture;
  report.files = files_of(source.files);
  report.tensors = source.tensors;
  report.weights = source.weights;
  report.bytes = source.bytes;
}

Report report_of(const Plan& plan, const RunReport& run, const std::string& isa) {
  Report report;
  report.measured = plan.report.error;
  describe_source(plan.source, report);
  report.run = {run.seconds, run.bytes_read, run.bytes_written, run.peak_budget, run.threads, run.io, isa};
  for (const PlannedOutput& output : plan.outputs) report.outputs.push_back(output_report(plan, output));
  for (std::size_t s = 0; s < run.steps.size(); ++s)
    for (std::size_t e = 0; e < run.steps[s].encodings.size(); ++e)
      put_result(plan.steps[s].encodings[e], run.steps[s].encodings[e], !run.steps_kept.empty() && run.steps_kept[s],
                 report);
  return report;
}

std::vector<std::string> unmeasured_warnings(const Report& report) {
  std::vector<std::string> warnings;
  if (!report.measured) return warnings;
  for (const ReportOutput& output : report.outputs)
    if (const std::size_t unknown = not_measured(output); unknown != 0)
      warnings.push_back(
          fmt::format("{}: the report has no total error, because {} of {} tensors were not measured: an earlier run "
                      "converted them, or they were reused; `ggufmill compare` with the source measures all of them",
                      output.files.front().path, unknown, output.tensors.size()));
  return warnings;
}

namespace {

Status write_text(const std::string& path, const std::string& text, const StoreOptions& options) {
  BOOST_OUTCOME_TRY(const auto store, create_store({{path, text, text.size()}}, options));
  BOOST_OUTCOME_TRY(store->seal(std::array{std::uint64_t{0}}));
  return store->publish();
}

}  // namespace

Status write_text(const std::string& path, const std::string& text, bool overwrite) {
  return write_text(path, text, StoreOptions{.overwrite = overwrite});
}

Status write_own_text(const std::string& path, const std::string& text, bool overwrite) {
  return write_text(path, text, StoreOptions{.overwrite = overwrite, .only_owner_writes = true});
}

Status write_report(const Report& report, const std::string& json, const std::string& html, bool overwrite) {
  if (!json.empty()) {
    const auto form = [&](const TextSink& sink) { report_json(report, sink); };
    BOOST_OUTCOME_TRY(write_pieces(json, form, overwrite));
  }
  if (html.empty()) return ok();
  const auto form = [&](const TextSink& sink) { report_html(report, sink); };
  return write_pieces(html, form, overwrite);
}

}  // namespace ggufmill
