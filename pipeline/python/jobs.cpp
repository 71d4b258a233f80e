// Planning, checking, running and measuring of jobs; comparison of models.
#include <fmt/format.h>
#include <pybind11/stl.h>

#include <chrono>
#include <filesystem>

#include "pipeline/api/measure_page.h"
#include "pipeline/api/publish/publish.h"
#include "pipeline/api/reports.h"
#include "pipeline/core/text.h"

#include "pipeline/plan/written.h"
#include "pipeline/python/bindings.h"
#include "pipeline/python/interruptible.h"
#include "pipeline/report/report.h"

namespace ggufmill::python {

namespace py = pybind11;

namespace {

using Strings = std::vector<std::string>;
using Clock = std::chrono::steady_clock;

// A pipeline file, or the text of one; `path` then replaces the path in messages.
struct JobText {
  std::string path;
  std::optional<std::string> text;
  JobOptions options;
};

JobText job_text(std::string path, std::optional<std::string> text, Strings set, Strings parameters) {
  return {std::move(path), std::move(text), {std::move(set), std::move(parameters)}};
}

Result<Job> load(const Context& context, const JobText& job) {
  return job.text ? context.parse_job(*job.text, job.path, job.options) : context.load_job(job.path, job.options);
}

Result<Batch> load_all(const Context& context, const JobText& job) {
  return job.text ? context.parse_batch(*job.text, job.path, job.options) : context.load_batch(job.path, job.options);
}

struct OpenPlan {
  SharedContext context;
  Plan plan;
};

// Converts errors to a flat list, including the `also` errors of each.
py::list errors(const std::vector<Error>& all) {
  Diagnostics each;
  for (const Error& error : all) each.add(error);
  py::list made;
  for (const Error& error : each.errors()) made.append(to_python(error));
  return made;
}

py::dict file_of(const std::string& path, std::uint64_t bytes) {
  py::dict file;
  file["path"] = text(path);
  file["bytes"] = bytes;
  return file;
}

py::dict source_of(const OpenPlan& open) {
  const PlannedSource& source = open.plan.source;
  py::list files;
  for (const SourceRef& file : source.files) files.append(file_of(file->path, file->bytes));
  py::dict made;
  made["name"] = text(source.name);
  made["architecture"] = text(source.architecture);
  made["files"] = files;
  made["tensors"] = source.tensors;
  made["weights"] = source.weights;
  made["bytes"] = source.bytes;
  return made;
}

py::dict tensor_of(const PlannedTensor& tensor) {
  py::dict made;
  made["name"] = text(tensor.name);
  made["shape"] = numpy_shape(tensor.shape);
  made["from"] = std::string(tensor.source_type->name);
  made["to"] = std::string(tensor.type->name);
  made["fallback_from"] = tensor.fallback_from ? py::cast(std::string(tensor.fallback_from->name)) : py::none();
  made["bytes_from"] = tensor.source_bytes;
  made["bytes"] = tensor.bytes;
  made["importance"] = tensor.importance;
  made["why"] = text(tensor.reason);
  return made;
}

// The same data as in `ggufmill plan --json`, except for the order of the shapes' dimensions.
py::list outputs_of(const OpenPlan& open) {
  py::list outputs;
  for (const PlannedOutput& output : open.plan.outputs) {
    py::list files, tensors;
    for (const OutputFile& file : output.files) files.append(file_of(file.path, file.bytes));
    for (const PlannedTensor& tensor : output.tensors) tensors.append(tensor_of(tensor));
    py::dict made;
    made["files"] = files;
    made["recipe"] = text(output.recipe);
    made["tensors"] = tensors;
    outputs.append(made);
  }
  return outputs;
}

std::shared_ptr<OpenPlan> plan(const std::shared_ptr<Context>& context, const JobText& text) {
  Result<Plan> made = interruptible([&](const std::atomic<bool>&, ProgressSlot&) -> Result<Plan> {
    BOOST_OUTCOME_TRY(const Job job, load(*context, text));
    return context->plan(with_known_importance(*context, job));
  });
  return std::make_shared<OpenPlan>(OpenPlan{context, value_or_raise(std::move(made))});
}

py::list check(const Context& context, const JobText& text, bool overwrite) {
  const Result<std::vector<Error>> found =
      interruptible([&](const std::atomic<bool>& stop, ProgressSlot&) -> Result<std::vector<Error>> {
        BOOST_OUTCOME_TRY(const Batch batch, load_all(context, text));
        std::vector<Error> all;
        for (const BatchJob& each : batch.jobs) {
          if (stop) break;
          const std::vector<Error> of_job = check_job(context, each, overwrite);
          all.insert(all.end(), of_job.begin(), of_job.end());
        }
        return all;
      });
  return found ? errors(found.value()) : errors({found.error()});
}

// Progress of a plan, measured from the start of the operation.
class PlanProgress {
 public:
  explicit PlanProgress(ProgressSlot& slot) : slot_(slot) {}
  void operator()(const Plan& plan, const Progress& now) {
    if (&plan != plan_) {
      plan_ = &plan;
      to_read_ = plan.bytes_read();
      to_write_ = 0;  // bytes of tensors only, which is what the progress counts
      for (const PlannedOutput& output : plan.outputs)
        for (const PlannedTensor& tensor : output.tensors) to_write_ += tensor.bytes;
    }
    slot_.set({now.bytes_read, to_read_, now.bytes_written, to_write_, now.tensor ? *now.tensor : std::string(),
               std::chrono::duration<double>(Clock::now() - start_).count()});
  }

 private:
  ProgressSlot& slot_;
  const Plan* plan_ = nullptr;
  std::uint64_t to_read_ = 0, to_write_ = 0;
  const Clock::time_point start_ = Clock::now();
};

std::string json_of(const Report& report) {
  std::string json;
  report_json(report, [&](std::string_view piece) { json += piece; });
  return json;
}

struct RunWords {
  bool overwrite, resume;
};

// A report as JSON, and warnings.
using CallResult = std::pair<std::string, Strings>;

Result<CallResult> run_plan(const Context& context, const Plan& plan, const RunWords& words,
                            const std::atomic<bool>& stop, ProgressSlot& slot) {
  PlanProgress progress(slot);
  RunOptions options;
  options.overwrite = words.overwrite;
  options.resume = words.resume;
  options.stop = &stop;
  options.progress = [&](const Progress& now) { progress(plan, now); };
  BOOST_OUTCOME_TRY(const RunReport done, context.run(plan, options));
  Strings warnings = plan.warnings;
  warnings.insert(warnings.end(), done.warnings.begin(), done.warnings.end());
  return CallResult{json_of(context.report_of(plan, done)), std::move(warnings)};
}

Status measure_where_needed(const Context& context, Job& job, bool overwrite, const std::atomic<bool>& stop,
                            ProgressSlot& slot) {
  MeasureOptions options;
  options.run.stop = &stop;
  options.progress = read_progress(slot);
  return measure_if_needed(context, job, overwrite, options);
}

// Runs a batch; returns all its failures as one error.
Result<CallResult> run_all(const Context& context, const Batch& batch, const RunWords& words,
                           const std::atomic<bool>& stop, ProgressSlot& slot) {
  PlanProgress progress(slot);
  BatchOptions options;
  options.run.overwrite = words.overwrite;
  options.run.resume = words.resume;
  options.run.stop = &stop;
  options.adjust = [&](const std::string&, Job& job) { return measure_where_needed(context, job, true, stop, slot); };
  options.progress = [&](const Plan& plan, const Progress& now) { progress(plan, now); };
  const BatchReport done = run_batch(context, batch, options);
  Diagnostics failures;
  for (const Error& error : failures_of(done.cells)) failures.add(error);
  if (done.unreported) failures.add(*done.unreported);
  if (!failures.empty()) return failures.together();
  return CallResult{batch_json(done), done.warnings};
}

// Runs the jobs of a pipeline file with steps, up to the first that fails.
Result<CallResult> run_steps(const Context& context, const Batch& batch, const RunWords& words,
                             const std::atomic<bool>& stop, ProgressSlot& slot) {
  PlanProgress progress(slot);
  PublishOptions options;
  options.batch.run.overwrite = words.overwrite;
  options.batch.run.resume = words.resume;
  options.batch.run.stop = &stop;
  options.batch.adjust = [&](const std::string&, Job& job) {
    return measure_where_needed(context, job, true, stop, slot);
  };
  options.batch.progress = [&](const Plan& plan, const Progress& now) { progress(plan, now); };
  BatchReport all;
  for (const BatchJob& each : batch.jobs) {
    BOOST_OUTCOME_TRY(const PublishReport done, publish(context, each, options));
    all.cells.insert(all.cells.end(), done.cells.begin(), done.cells.end());
    all.warnings.insert(all.warnings.end(), done.warnings.begin(), done.warnings.end());
  }
  return CallResult{batch_json(all), all.warnings};
}

// Output paths of a measurement and its page; not written if empty.
struct MeasureWords {
  std::string output, html;
  bool overwrite;
};

// Measures a job and writes its files.
Result<Measurement> measure_job(const Context& context, const Job& job, const MeasureWords& words,
                                const std::atomic<bool>& stop, ProgressSlot& slot) {
  MeasureOptions options;
  options.run.stop = &stop;
  options.progress = read_progress(slot);
  BOOST_OUTCOME_TRY(Measurement measured, context.measure(job, options));
  if (!words.output.empty()) {
    BOOST_OUTCOME_TRY(write_text(words.output, write_measurement(measured), words.overwrite));
  }
  if (!words.html.empty()) {
    BOOST_OUTCOME_TRY(write_text(words.html, measurement_html(measured), words.overwrite));
  }
  return measured;
}

// Checks, before anything is measured, that no existing file is replaced without a request.
Status check_absent(const MeasureWords& words) {
  for (const std::string& path : {words.output, words.html})
    if (!path.empty() && !words.overwrite && std::filesystem::exists(path))
      return Error{ExitCode::kIo, path, "already exists", "", "pass overwrite=True to replace it"};
  return ok();
}

// Checks that no input of the job is replaced.
Status check_inputs(const Context& context, const Job& job, const MeasureWords& words) {
  BOOST_OUTCOME_TRY(std::vector<std::string> read, context.inputs(job));
  if (!words.output.empty()) {
    BOOST_OUTCOME_TRY(context.check_written({words.output, "measurement"}, read, true));
    read.push_back(words.output);  // the page must not replace it either
  }
  if (!words.html.empty()) {
    BOOST_OUTCOME_TRY(context.check_written({words.html, "page"}, read, true));
  }
  return ok();
}

py::object measure(const Context& context, const JobText& text, const std::string& output, const std::string& html,
                   bool overwrite, const py::object& progress) {
  const MeasureWords words{output, html, overwrite};
  const Result<std::string> json = interruptible(
      [&](const std::atomic<bool>& stop, ProgressSlot& slot) -> Result<std::string> {
        BOOST_OUTCOME_TRY(const Job job, load(context, text));
        BOOST_OUTCOME_TRY(check_absent(words));
        BOOST_OUTCOME_TRY(check_inputs(context, job, words));
        BOOST_OUTCOME_TRY(const Measurement measured, measure_job(context, job, words, stop, slot));
        return write_measurement(measured);
      },
      progress);
  return python::text(value_or_raise(json));
}

py::list curve(const Context& context, const JobText& text, std::size_t output, std::size_t points,
               const py::object& progress) {
  const Result<Curve> found = interruptible(
      [&](const std::atomic<bool>& stop, ProgressSlot& slot) -> Result<Curve> {
        BOOST_OUTCOME_TRY(Job job, load(context, text));
        if (output >= job.outputs.size())
          return usage_error(fmt::format("output {} does not exist", output),
                             fmt::format("the job has {}, numbered from 0", job.outputs.size()));
        BOOST_OUTCOME_TRY(measure_where_needed(context, job, true, stop, slot));
        return context.curve(job, output, points);
      },
      progress);
  py::list made;
  for (const CurvePoint& point : value_or_raise(found).points) {
    py::dict each;
    each["recipe"] = point.recipe.empty() ? py::object(py::none()) : python::text(point.recipe);
    each["bytes"] = point.bytes;
    each["loss"] = point.loss;
    each["target"] = point.is_target;
    made.append(each);
  }
  return made;
}

std::string shown(const OpenPlan& open) {
  const std::size_t outputs = open.plan.outputs.size();
  return fmt::format("<ggufmill.Plan of {}: {} output{}, {} to read, {} to write>", quoted_name(open.plan.file),
                     outputs, outputs == 1 ? "" : "s", human_bytes(open.plan.bytes_read()),
                     human_bytes(open.plan.bytes_written()));
}

py::tuple described(Result<CallResult> done) {
  const CallResult given = value_or_raise(std::move(done));
  return py::make_tuple(text(given.first), texts(given.second));
}

py::tuple run(const Context& context, const JobText& text, bool overwrite, bool resume, const py::object& progress) {
  const RunWords words{overwrite, resume};
  return described(interruptible(
      [&](const std::atomic<bool>& stop, ProgressSlot& slot) -> Result<CallResult> {
        BOOST_OUTCOME_TRY(Batch batch, load_all(context, text));
        if (has_steps(batch)) return run_steps(context, batch, words, stop, slot);
        if (batch.is_matrix) return run_all(context, batch, words, stop, slot);
        Job& job = batch.jobs.front().job;
        BOOST_OUTCOME_TRY(measure_where_needed(context, job, overwrite, stop, slot));
        BOOST_OUTCOME_TRY(const Plan made, context.plan(job));
        return run_plan(context, made, words, stop, slot);
      },
      progress));
}

py::tuple run_planned(const OpenPlan& open, bool overwrite, bool resume, const py::object& progress) {
  return described(interruptible(
      [&](const std::atomic<bool>& stop, ProgressSlot& slot) {
        return run_plan(*open.context, open.plan, {overwrite, resume}, stop, slot);
      },
      progress));
}

py::tuple compare(const Context& context, const std::string& a, const std::string& b, const std::string& importance,
                  const std::string& html, bool overwrite, unsigned threads, const py::object& progress) {
  return described(interruptible(
      [&](const std::atomic<bool>& stop, ProgressSlot& slot) -> Result<CallResult> {
        ComparisonOptions options;
        options.importance = importance;
        options.html = html;
        options.overwrite = overwrite;
        options.threads = threads;
        options.stop = &stop;
        options.progress = read_progress(slot);
        BOOST_OUTCOME_TRY(const Comparison done, context.compare(a, b, options));
        return CallResult{json_of(done.report), done.warnings};
      },
      progress));
}

}  // namespace

void bind_jobs(py::module_& module, ContextClass& context) {
  py::class_<JobText>(module, "JobText")
      .def(py::init(&job_text), py::arg("path"), py::arg("text"), py::arg("set"), py::arg("parameters"));
  py::class_<OpenPlan, std::shared_ptr<OpenPlan>> plan_class(module, "Plan", "The plan of a job: see Context.plan.");
  plan_class.attr("__module__") = "ggufmill";
  plan_class.def_property_readonly("file", [](const OpenPlan& self) { return text(self.plan.file); })
      .def_property_readonly("source", &source_of)
      .def_property_readonly("outputs", &outputs_of)
      .def_property_readonly("problems", [](const OpenPlan& self) { return errors(self.context->problems(self.plan)); })
      .def_property_readonly("warnings", [](const OpenPlan& self) { return texts(self.plan.warnings); })
      .def_property_readonly("bytes_read", [](const OpenPlan& self) { return self.plan.bytes_read(); })
      .def_property_readonly("bytes_written", [](const OpenPlan& self) { return self.plan.bytes_written(); })
      .def_property_readonly("least_memory", [](const OpenPlan& self) { return self.plan.least_memory; })
      .def(
          "written", [](const OpenPlan& self) { return text(write_plan(self.plan)); },
          "The plan in its serialized form, JSON: the same on every machine.")
      .def("__repr__", [](const OpenPlan& self) { return text(shown(self)); })
      .def("_run", &run_planned, py::arg("overwrite"), py::arg("resume"), py::arg("progress"));
  context.def("plan", &plan, py::arg("job"))
      .def("check", &check, py::arg("job"), py::arg("overwrite"))
      .def("run", &run, py::arg("job"), py::arg("overwrite"), py::arg("resume"), py::arg("progress"))
      .def("measure", &measure, py::arg("job"), py::arg("output"), py::arg("html"), py::arg("overwrite"),
           py::arg("progress"))
      .def("curve", &curve, py::arg("job"), py::arg("output"), py::arg("points"), py::arg("progress"))
      .def("compare", &compare, py::arg("a"), py::arg("b"), py::arg("importance"), py::arg("html"),
           py::arg("overwrite"), py::arg("threads"), py::arg("progress"));
}

}  // namespace ggufmill::python
