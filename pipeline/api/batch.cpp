#include "pipeline/api/batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>

#include "pipeline/api/context.h"
#include "pipeline/api/reports.h"
#include "pipeline/core/text.h"
#include "pipeline/io/remote/address.h"
#include "pipeline/plan/problems.h"
#include "pipeline/report/json_text.h"
#include "pipeline/report/pages.h"

namespace ggufmill {
namespace {

namespace json = boost::json;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

void describe(const PlannedOutput& output, BatchCell& cell) {
  cell.recipe = output.recipe;
  cell.output = output.files.empty() ? std::string() : output.files.front().path;
  for (const OutputFile& file : output.files) cell.bytes += file.bytes;
  for (const PlannedTensor& tensor : output.tensors) {
    cell.weights += tensor.shape.elements();
    cell.tensor_bytes += tensor.bytes;
  }
}

// The part of a batch that reads one source.
class SourceRun {
 public:
  SourceRun(const Context& context, const BatchJob& job, const BatchOptions& options)
      : context_(context), job_(job.job), options_(options), cells_(job.job.outputs.size()) {
    for (BatchCell& cell : cells_) cell.source = job.source;
    for (std::size_t i = 0; i < cells_.size(); ++i) left_.push_back(i);
  }

  // Runs source number `index` of `count`.
  void run(std::size_t index, std::size_t count) {
    if (!prepare()) return;
    if (options_.begun) options_.begun(cells_.front().source, index, count);
    RunOptions run = options_.run;
    if (options_.progress) run.progress = [&](const Progress& now) { options_.progress(*plan_, now); };
    const auto start = Clock::now();
    const auto report = context_.run(*plan_, run);
    if (!report && report.error().code == ExitCode::kInterrupted) return;  // its cells stay kNotRun
    if (!report) return fail_all(report.error());
    warnings_ = report.value().warnings;
    for (const std::size_t i : left_) {
      cells_[i].seconds = seconds_since(start);
      end(i, CellState::kWritten);
    }
  }

  // Returns what run() would do.
  SourcePlan plan() {
    if (!prepare()) return {std::move(cells_), {}};
    Diagnostics errors;
    for (Error& error : context_.check(*plan_, options_.run.overwrite)) errors.add(std::move(error));
    if (errors.empty()) return {std::move(cells_), std::move(plan_)};
    fail_all(errors.together());
    return {std::move(cells_), {}};
  }

  std::vector<BatchCell>& cells() { return cells_; }
  const std::vector<std::string>& warnings() const { return warnings_; }
  // Adds the files read and written, as far as they are known.
  void add_files(BatchFiles& files) const {
    files.read.push_back(cells_.front().source);
    for (std::string& path : other_inputs(job_)) files.read.push_back(std::move(path));
    for (const BatchCell& cell : cells_)
      if (!cell.output.empty()) files.written.push_back({cell.output, "output"});
    if (plan_) files.add(*plan_);
  }

 private:
  bool prepare() {
    if (options_.adjust)
      if (const Status adjusted = options_.adjust(cells_.front().source, job_); !adjusted) {
        if (adjusted.error().code != ExitCode::kInterrupted) fail_all(adjusted.error());
        return false;
      }
    return plan_what_is_left();
  }

  // Plans the outputs that can be made and do not exist yet; returns false if there are none.
  bool plan_what_is_left() {
    if (!make_plan()) {
      skip_those_that([&](const Job& job) { return context_.plan(job); });
      if (left_.empty()) return false;
      if (!make_plan()) return fail_all(*error_), false;
    }
    for (std::size_t k = 0; k < left_.size(); ++k) describe(plan_->outputs[k], cells_[left_[k]]);
    // Outputs of a run that can be resumed are not compared with manifests yet: the run is completed first.
    if (plan_->manifest && !context_.leftovers(*plan_).can_resume()) {
      if (skip_unchanged() && !left_.empty() && !make_plan()) return fail_all(*error_), false;
      if (left_.empty()) return false;
    }
    if (context_.check(*plan_, options_.run.overwrite).empty()) return true;
    skip_those_that([&](const Job& job) -> Result<Plan> {
      BOOST_OUTCOME_TRY(Plan plan, context_.plan(job));
      Diagnostics errors;
      for (Error& error : context_.check(plan, options_.run.overwrite)) errors.add(std::move(error));
      if (!errors.empty()) return errors.together();
      return plan;
    });
    if (left_.empty()) return false;
    if (!make_plan()) return fail_all(*error_), false;
    return true;  // run() reports the errors that concern all outputs together
  }

  Job job_with(const std::vector<std::size_t>& outputs) const {
    Job job = job_;
    job.outputs.clear();
    for (const std::size_t i : outputs) job.outputs.push_back(job_.outputs[i]);
    return job;
  }

  // Plans the remaining outputs. Returns false and sets error_ on failure.
  bool make_plan() {
    auto plan = context_.plan(job_with(left_));
    if (!plan) return error_ = plan.error(), false;
    plan_ = std::move(plan).value();
    return true;
  }

  // Checks the remaining outputs individually and drops those for which `tried` fails.
  template <class Tried>
  void skip_those_that(const Tried& tried) {
    std::vector<std::size_t> good;
    for (const std::size_t i : left_) {
      const Result<Plan> plan = tried(job_with({i}));
      if (plan)
        good.push_back(i);
      else
        fail(i, plan.error());
    }
    left_ = std::move(good);
  }

  // Drops the unchanged outputs from those remaining; returns false if there are none.
  bool skip_unchanged() {
    const std::vector<bool> unchanged = context_.unchanged(*plan_, options_.run.stop);
    std::vector<std::size_t> changed;
    for (std::size_t k = 0; k < left_.size(); ++k)
      if (unchanged[k])
        end(left_[k], CellState::kUnchanged);
      else
        changed.push_back(left_[k]);
    const bool some = changed.size() < left_.size();
    left_ = std::move(changed);
    return some;
  }

  void fail(std::size_t i, Error error) {
    cells_[i].error = std::move(error);
    end(i, CellState::kFailed);
  }
  void fail_all(const Error& error) {
    for (const std::size_t i : left_) fail(i, error);
  }
  void end(std::size_t i, CellState state) {
    cells_[i].state = state;
    if (options_.ended) options_.ended(cells_[i]);
  }

  const Context& context_;
  Job job_;
  const BatchOptions& options_;
  std::vector<BatchCell> cells_;   // of all outputs of the job
  std::vector<std::size_t> left_;  // indices of the outputs still to be written
  std::optional<Plan> plan_;       // of the outputs in left_
  std::optional<Error> error_;     // set if the plan could not be made
  std::vector<std::string> warnings_;
};

json::string text_json(const std::string& text) { return json::string(is_utf8(text) ? text : quoted_name(text)); }

double bits_per_weight(const BatchCell& cell) {
  return cell.weights ? 8.0 * static_cast<double>(cell.tensor_bytes) / static_cast<double>(cell.weights) : 0;
}

}  // namespace

std::string_view name_of(CellState state) {
  constexpr std::string_view kNames[] = {"written", "unchanged", "failed", "not run"};
  return kNames[static_cast<std::size_t>(state)];
}

std::size_t BatchReport::count(CellState state) const {
  return static_cast<std::size_t>(std::ranges::count(cells, state, &BatchCell::state));
}

SourcePlan plan_source(const Context& context, const BatchJob& job, const BatchOptions& options) {
  return SourceRun(context, job, options).plan();
}

std::vector<Error> failures_of(const std::vector<BatchCell>& cells) {
  constexpr std::size_t kMaxListed = 8;
  struct Cause {
    Error error;
    std::vector<std::string> details, cells;
  };
  std::vector<Cause> causes;
  for (const BatchCell& cell : cells) {
    if (!cell.error) continue;
    Diagnostics errors;
    errors.add(*cell.error);
    for (const Error& error : errors.errors()) {
      auto cause = std::ranges::find_if(causes, [&](const Cause& known) {
        return known.error.where == error.where && known.error.what == error.what && known.error.help == error.help;
      });
      if (cause == causes.end()) cause = causes.insert(causes.end(), {error, {}, {}});
      const auto add = [](std::vector<std::string>& list, std::string text) {
        while (text.ends_with('\n')) text.pop_back();
        if (!text.empty() && std::ranges::count(list, text) == 0) list.push_back(std::move(text));
      };
      std::string of = cell.output.empty() ? fmt::format("for the outputs of {}", remote::without_secrets(cell.source))
                                           : fmt::format("for {}, of {}", remote::without_secrets(cell.output),
                                                         remote::without_secrets(cell.source));
      const bool is_of_cell =
          error.where.empty() && !error.detail.empty() && error.detail.find('\n') == error.detail.npos;
      if (is_of_cell) of += ": " + error.detail;
      if (!is_of_cell) add(cause->details, error.detail);
      add(cause->cells, std::move(of));
    }
  }
  std::vector<Error> failures;
  for (Cause& cause : causes) {
    std::string& detail = cause.error.detail;
    detail.clear();
    for (const auto* list : {&cause.details, &cause.cells}) {
      for (std::size_t i = 0; i < std::min(list->size(), kMaxListed); ++i)
        detail += (detail.empty() ? "" : "\n") + (*list)[i];
      if (list->size() > kMaxListed) detail += fmt::format("\nand {} more", list->size() - kMaxListed);
    }
    failures.push_back(std::move(cause.error));
  }
  return failures;
}

std::vector<Error> of_source(const std::vector<Error>& errors, const std::string& source) {
  Diagnostics all;
  for (const Error& error : errors) all.add(error);
  std::vector<Error> named = all.errors();
  if (source.empty()) return named;
  for (Error& error : named) {
    if (!error.detail.empty() && !error.detail.ends_with('\n')) error.detail += '\n';
    error.detail += "for the outputs of " + remote::without_secrets(source);
  }
  return named;
}

std::vector<BatchCell> cells_of(const Plan& plan, const std::string& source) {
  std::vector<BatchCell> cells(plan.outputs.size());
  for (std::size_t i = 0; i < cells.size(); ++i) {
    cells[i].source = source;
    describe(plan.outputs[i], cells[i]);
  }
  return cells;
}

void BatchFiles::add(const Plan& plan) {
  for (std::string& path : plan.input_paths()) read.push_back(std::move(path));
  for (WrittenPath& path : written_paths(plan)) written.push_back(std::move(path));
}

Status write_batch_report(const BatchReport& report, const ReportRequest& wanted, const BatchFiles& files) {
  for (const std::string& path : {wanted.json, wanted.html}) {
    if (path.empty()) continue;
    BOOST_OUTCOME_TRY(check_written({path, "report"}, files.read, true));
    for (const WrittenPath& output : files.written) {
      const WrittenPath both[] = {output, {path, "report"}};
      Diagnostics errors;
      check_distinct(both, {}, errors);
      if (!errors.empty()) return errors.together();
    }
  }
  if (!wanted.json.empty()) {
    BOOST_OUTCOME_TRY(write_text(wanted.json, batch_json(report), true));
  }
  if (!wanted.html.empty()) {
    BOOST_OUTCOME_TRY(write_text(wanted.html, batch_html(report), true));
  }
  return ok();
}

namespace {

// Fails with exit code 2 if the report would replace what is known to be read, before anything is written. The other
// files are checked when the report is written.
Status check_report(const Batch& batch) {
  BatchFiles files;
  for (const BatchJob& each : batch.jobs) {
    files.read.push_back(each.source);
    for (std::string& path : other_inputs(each.job)) files.read.push_back(std::move(path));
  }
  for (const std::string& path : {batch.report.json, batch.report.html})
    if (!path.empty()) {
      BOOST_OUTCOME_TRY(check_written({path, "report"}, files.read, true));
    }
  return ok();
}

}  // namespace

BatchReport run_batch(const Context& context, const Batch& batch, const BatchOptions& options) {
  BatchReport report;
  BatchFiles files;
  const auto start = Clock::now();
  if (const Status usable = check_report(batch); !usable) report.unreported = usable.error();
  bool goes_on = !report.unreported;
  for (std::size_t i = 0; i < batch.jobs.size(); ++i) {
    SourceRun source(context, batch.jobs[i], options);
    goes_on = goes_on && !(options.run.stop && *options.run.stop);
    if (goes_on) source.run(i, batch.jobs.size());
    source.add_files(files);
    for (const std::string& warning : source.warnings()) report.warnings.push_back(warning);
    for (BatchCell& cell : source.cells()) {
      goes_on = goes_on && !(options.fail_fast && cell.state == CellState::kFailed);
      report.cells.push_back(std::move(cell));
    }
  }
  report.seconds = seconds_since(start);
  if (report.unreported) return report;
  if (const Status written = write_batch_report(report, batch.report, files); !written)
    report.unreported = written.error();
  return report;
}

std::string batch_json(const BatchReport& report) {
  json::array cells;
  for (const BatchCell& cell : report.cells) {
    json::object one{{"source", text_json(remote::without_secrets(cell.source))},
                     {"output", text_json(remote::without_secrets(cell.output))},
                     {"recipe", text_json(cell.recipe)},
                     {"state", name_of(cell.state)},
                     {"bytes", cell.bytes},
                     {"weights", cell.weights},
                     {"bits_per_weight", bits_per_weight(cell)},
                     {"seconds", cell.seconds}};
    one["error"] = cell.error ? json::value(text_json(cell.error->what)) : json::value();
    cells.push_back(std::move(one));
  }
  return json::serialize(json::object{{"format", "ggufmill batch"},
                                      {"version", 1},
                                      {"ggufmill", GGUFMILL_VERSION},
                                      {"seconds", report.seconds},
                                      {"written", report.count(CellState::kWritten)},
                                      {"unchanged", report.count(CellState::kUnchanged)},
                                      {"failed", report.count(CellState::kFailed)},
                                      {"not_run", report.count(CellState::kNotRun)},
                                      {"cells", std::move(cells)}}) +
         "\n";
}

namespace {

std::string fact(std::string_view name, const std::string& text) {
  return fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", name, text);
}

// One table row for an output, and another below it with the error if it failed.
std::string rows_of(const BatchCell& cell) {
  const std::string why =
      !cell.error
          ? ""
          : html_text(cell.error->where.empty() ? cell.error->what : cell.error->where + ": " + cell.error->what);
  const std::string_view state = name_of(cell.state), style = cell.state == CellState::kNotRun ? "none" : state;
  return fmt::format(
      "<tr{}><td>{}<td class=recipe>{}<td class=number>{}<td class=number>{:.2f}<td class=number>{:.1f}"
      "<td class=\"state {}\">{}\n{}",
      why.empty() ? "" : " class=has-why", html_text(remote::without_secrets(cell.output)), html_text(cell.recipe),
      human_bytes(cell.bytes), bits_per_weight(cell), cell.seconds, style, state,
      why.empty() ? "" : fmt::format("<tr class=why><td colspan=6>{}\n", why));
}

}  // namespace

std::string batch_html(const BatchReport& report) {
  std::string facts, rows;
  for (const CellState state : {CellState::kWritten, CellState::kUnchanged, CellState::kFailed, CellState::kNotRun})
    facts += fact(name_of(state), std::to_string(report.count(state)));
  facts += fact("time", fmt::format("{:.1f} s", report.seconds));
  const std::string* source = nullptr;
  for (const BatchCell& cell : report.cells) {
    if (!source || *source != cell.source)
      rows += fmt::format("<tr class=source><th colspan=6 scope=rowgroup>{}\n",
                          html_text(remote::without_secrets(cell.source)));
    source = &cell.source;
    rows += rows_of(cell);
  }
  return page_with(
      kBatchPage,
      fmt::format("<dl class=facts>\n{}</dl>\n<section><table class=batch><thead><tr><th scope=col>output<th scope=col "
                  "class=recipe>recipe<th scope=col class=number>size<th scope=col class=number>bits per weight<th "
                  "scope=col class=number>seconds<th scope=col class=state>state</thead><tbody>\n{}</tbody></table>"
                  "</section>\n<footer><p>ggufmill {}</p></footer>\n",
                  facts, rows, GGUFMILL_VERSION));
}

}  // namespace ggufmill
