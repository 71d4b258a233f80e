#include "pipeline/api/publish/quality.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>

#include "pipeline/api/publish/result_file.h"
#include "pipeline/api/reports.h"
#include "pipeline/core/text.h"
#include "pipeline/io/json_file.h"
#include "pipeline/io/own_file.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/source_path.h"
#include "pipeline/report/json_text.h"

namespace ggufmill {
namespace {

namespace json = boost::json;

constexpr std::pair<const char*, double MeasuredQuality::*> kNumbers[] = {
    {"perplexity", &MeasuredQuality::perplexity},
    {"base_perplexity", &MeasuredQuality::base_perplexity},
    {"divergence", &MeasuredQuality::divergence},
    {"divergence_error", &MeasuredQuality::divergence_error},
    {"divergence_99", &MeasuredQuality::divergence_99},
    {"divergence_max", &MeasuredQuality::divergence_max},
    {"same_top", &MeasuredQuality::same_top}};

json::object to_json(const MeasuredQuality& quality) {
  json::object object;
  for (const auto& [name, member] : kNumbers) object[name] = quality.*member;
  return object;
}

std::optional<MeasuredQuality> from_json(const json::object& object) {
  MeasuredQuality quality;
  for (const auto& [name, member] : kNumbers) {
    const json::value* value = object.if_contains(name);
    if (!value || !value->is_number()) return {};
    quality.*member = value->to_number<double>();
  }
  return quality;
}

Result<bool> compares(const QualityOptions& options, const JobOutput& output, const std::string& path) {
  if (output.part.value_or(ModelPart::kText) != ModelPart::kText || !path.ends_with(".gguf")) return false;
  const std::string name = fs::path(path).filename().string();
  for (const Pattern& pattern : options.outputs) {
    BOOST_OUTCOME_TRY(const bool matches, pattern.matches(name));
    if (matches) return true;
  }
  return options.outputs.empty();
}

// ---- quality in the reports of the runs that wrote the outputs ----

constexpr std::uint64_t kMaxReportBytes = 1 << 30;

// Returns a report, as JSON or as a page, with the member `quality` of the outputs set; other outputs stay as they are.
// Every output begins a line (report_json()), with the member `files` first, or second after `quality`.
std::string with_quality(std::string report, const QualityByPath& quality) {
  for (const auto& [path, object] : quality) {
    const std::string files = "\"files\":[{\"path\":" + script_text(to_json_text(boost::json::value(path))) + ",";
    const std::size_t at = report.find(files, report.find("\"outputs\":["));
    if (at == std::string::npos) continue;
    const std::size_t line = report.rfind('\n', at) + 1;
    report.replace(line, at - line, "{\"quality\":" + script_text(to_json_text(object)) + ",");
  }
  return report;
}

// Returns the report at a path with quality, and whether that changes it; none if there is no report.
std::optional<std::pair<std::string, bool>> changed(const std::string& path, const QualityByPath& quality) {
  if (path.empty() || !is_file(path)) return {};
  const auto text = read_text_file(path, kMaxReportBytes);
  if (!text || text.value().find("\"format\":\"ggufmill-report\"") == std::string::npos) return {};
  std::string with = with_quality(text.value(), quality);
  const bool is_other = with != text.value();
  return std::pair(std::move(with), is_other);
}

// Both do nothing for a file that does not exist, or that is no report. The second returns true if there is nothing to
// do.
Status add_quality(const std::string& path, const QualityByPath& quality) {
  const auto report = changed(path, quality);
  return report && report->second ? write_text(path, report->first, true) : Status(ok());
}

bool has_quality(const std::string& path, const QualityByPath& quality) {
  const auto report = changed(path, quality);
  return !report || !report->second;
}

}  // namespace

std::string base_of(const QualityOptions& options, const Job& job) {
  return options.base.empty() ? job.outputs.front().sink->target() : options.base;
}

Status check_base(const QualityOptions& options, const Job& job) {
  const std::string target = base_of(options, job);
  if (std::ranges::any_of(job.outputs, [&](const auto& output) { return output.sink->target() == target; }))
    return ok();
  return error_at(options.origin, fmt::format("no output of this job is {}", quoted_name(target)),
                  "`against` is the path of an output");
}

bool is_base(const QualityOptions& options, const Job& job, const JobOutput& output) {
  return output.sink->target() == base_of(options, job);
}

bool is_compared(const QualityOptions& options, const Job& job, const JobOutput& output, const std::string& path) {
  if (is_base(options, job, output)) return false;
  const auto compared = compares(options, output, path);
  return !compared || compared.value();  // the error is that of the step
}

Result<QualityStep> QualityStep::make(const QualityOptions& options, JobOutputs& outputs,
                                      std::optional<std::size_t> parts) {
  BOOST_OUTCOME_TRY(check_base(options, outputs.job()));
  QualityStep step(options);
  step.is_whole_ = parts.value_or(outputs.parts().size()) == outputs.parts().size();
  const std::string base = base_of(options, outputs.job());
  const auto take = [&](const JobOutput& output, const WrittenOutput& written) -> Status {
    QualityOutput one{written.path, {}};
    for (const ManifestFile& file : written.manifest.files) one.sha256.push_back(file.sha256);
    if (output.sink->target() == base) {
      step.base_ = std::move(one);
      return ok();
    }
    BOOST_OUTCOME_TRY(const bool is_wanted, compares(options, output, written.path));
    if (is_wanted) step.outputs_.push_back(std::move(one));
    return ok();
  };
  BOOST_OUTCOME_TRY(outputs.for_each_written(take, parts));
  BOOST_OUTCOME_TRY(step.text_hash_, hash_of(options.perplexity.text));
  BOOST_OUTCOME_TRY(const Plan* const plan, outputs.plan_of(outputs.parts().back()));
  step.reports_ = {plan->report.json, plan->report.html};
  return step;
}

std::string QualityStep::key_of(const QualityOutput& output) const {
  std::vector<std::string> parts{"quality", text_hash_, std::to_string(options_.perplexity.chunks),
                                 std::to_string(options_.perplexity.context)};
  parts.insert(parts.end(), options_.perplexity.options.begin(), options_.perplexity.options.end());
  for (const QualityOutput* each : {&base_, &output})
    for (const std::string& sum : each->sha256) parts.push_back(sum);
  return result_key(parts);
}

std::string QualityStep::predictions() const {
  const fs::path base(base_.path);
  return (base.parent_path() / fmt::format(".{}.predictions-{}", base.filename().string(), key_of(base_))).string();
}

std::vector<std::optional<MeasuredQuality>> QualityStep::known() const {
  std::vector<std::optional<MeasuredQuality>> known;
  for (const QualityOutput& output : outputs_) {
    const auto result = results_.find(key_of(output));
    known.push_back(result ? from_json(*result) : std::nullopt);
  }
  return known;
}

std::optional<MeasuredQuality> QualityStep::known_of(const std::string& path) const {
  const auto output = std::ranges::find(outputs_, path, &QualityOutput::path);
  const auto result = output == outputs_.end() ? std::nullopt : results_.find(key_of(*output));
  return result ? from_json(*result) : std::nullopt;
}

QualityByPath QualityStep::by_path() const {
  QualityByPath all;
  for (const QualityOutput& output : outputs_)
    if (const auto quality = known_of(output.path)) all.emplace_back(output.path, to_json(*quality));
  return all;
}

bool QualityStep::is_measured() const {
  return std::ranges::all_of(known(), [](const auto& each) { return each.has_value(); });
}

bool QualityStep::has_predictions() const { return is_own_file(predictions()); }

bool QualityStep::is_done() const {
  if (!is_measured()) return false;
  if (!is_whole_) return has_predictions();
  if (!std::ranges::all_of(reports_, [&](const auto& path) { return has_quality(path, by_path()); })) return false;
  return (options_.json.empty() || is_text_at(options_.json, json())) && !has_predictions();
}

Status QualityStep::run(const ProgramOptions& programs, bool overwrite) const {
  const std::vector<std::optional<MeasuredQuality>> before = known();
  const std::string predicted = predictions();
  if (!has_predictions() && !(is_whole_ && is_measured())) {
    BOOST_OUTCOME_TRY(const ProgramFile file, ProgramFile::create(predicted, ""));
    BOOST_OUTCOME_TRY(write_predictions(options_.perplexity, base_.path, file.path(), programs));
    BOOST_OUTCOME_TRY(file.finish());
  }
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    if (before[i]) continue;
    BOOST_OUTCOME_TRY(const MeasuredQuality measured,
                      measure_quality(options_.perplexity, outputs_[i].path, predicted, programs));
    BOOST_OUTCOME_TRY(results_.add(key_of(outputs_[i]), to_json(measured)));
  }
  if (!is_whole_) return ok();
  std::error_code error;
  fs::remove(predicted, error);
  for (const std::string& path : reports_) {
    BOOST_OUTCOME_TRY(add_quality(path, by_path()));
  }
  if (options_.json.empty() || is_text_at(options_.json, json())) return ok();
  return StepFiles().write(options_.json, json(), overwrite);
}

std::string QualityStep::json() const {
  json::array outputs;
  const std::vector<std::optional<MeasuredQuality>> results = known();
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    if (!results[i]) continue;
    json::object output{{"path", outputs_[i].path}, {"sha256", json::value_from(outputs_[i].sha256)}};
    for (const auto& [name, value] : to_json(*results[i])) output[name] = value;
    outputs.push_back(std::move(output));
  }
  return to_json_text(json::object{{"format", "ggufmill quality"},
                                   {"version", 1},
                                   {"against", base_.path},
                                   {"text", options_.perplexity.text},
                                   {"chunks", options_.perplexity.chunks},
                                   {"context", options_.perplexity.context},
                                   {"outputs", std::move(outputs)}}) +
         "\n";
}

}  // namespace ggufmill
