#include "pipeline/config/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <limits>
#include <set>
#include <type_traits>

#include "pipeline/config/matrix.h"
#include "pipeline/config/node_text.h"
#include "pipeline/config/overrides.h"
#include "pipeline/config/parameters.h"
#include "pipeline/config/yaml_reader.h"
#include "pipeline/io/platform/files.h"

namespace ggufmill {
namespace {

constexpr std::size_t kReadAtMost = (1 << 20) + 1;  // one byte more than the limit of a pipeline file

// Returns the line and column at the end of an error's `where`. Errors of the command line sort first, errors without a
// place last.
std::pair<int, int> place_of(const Error& error, const std::string& name) {
  std::pair<int, int> place{error.where.empty() ? std::numeric_limits<int>::max() : 0, 0};
  if (error.where.compare(0, name.size() + 1, name + ":") == 0)
    std::sscanf(error.where.c_str() + name.size(), ":%d:%d", &place.first, &place.second);
  return place;
}

// Sorts errors into file order, so that errors found by different steps are grouped by place.
std::vector<Error> in_order(std::vector<Error> errors, const std::string& name) {
  std::stable_sort(errors.begin(), errors.end(),
                   [&](const Error& a, const Error& b) { return place_of(a, name) < place_of(b, name); });
  return errors;
}

// Adds `found`, except errors for places that already have one: a parameter without a value is also an invalid size.
void add_new(const Diagnostics& found, Diagnostics& errors) {
  std::set<std::string> places;
  for (const Error& error : errors.errors()) places.insert(error.where + error.detail);
  for (const Error& error : found.errors())
    if (places.count(error.where + error.detail) == 0) errors.add(error);
}

template <class Spec>
const Spec* spec_named(const std::vector<Spec>& specs, std::string_view name) {
  const auto found =
      std::find_if(specs.begin(), specs.end(), [&](const Spec& spec) { return spec.field.name == name; });
  return found == specs.end() ? nullptr : &*found;
}

// Creates the parts of a job from the nodes without errors.
class Binding {
 public:
  Binding(const Registry& registry, const FaultyNodes& faulty, Job& job, Diagnostics& errors)
      : registry_(registry), faulty_(faulty), job_(job), errors_(errors) {}

  void bind(const ConfigNode& root) {
    if (const ConfigNode* source = root.find("source")) bind_source(*source);
    if (const ConfigNode* stages = root.find("stages"))
      for (const ConfigNode& item : stages->items) bind_stage(item);
    if (const ConfigNode* outputs = root.find("outputs"))
      for (const ConfigNode& item : outputs->items) bind_output(item);
    read(job_options(), root, job_);
  }

 private:
  bool is_faulty(const ConfigNode& node) const { return faulty_.contains(&node); }

  template <class Options>
  void read(const Fields<Options>& fields, const ConfigNode& node, Options& into) {
    for (const AnyForm& field : fields.list)
      if (const ConfigNode* value = node.find(field.spec.name); value && !is_faulty(*value))
        if (const Status read = field.read_into(*value, &into); !read) errors_.add(read.error());
  }

  // Returns the object that `spec` creates from a value. Returns null if there is no `spec`, if the value has errors,
  // or if creation fails, in which case the error is added.
  template <class Spec>
  auto create(const Spec* spec, const ConfigNode& value) {
    using Part = std::decay_t<decltype(spec->make(value).value())>;
    if (!spec || is_faulty(value)) return Part();
    auto result = spec->make(value);
    if (result) return std::move(result).value();
    errors_.add(result.error());
    return Part();
  }

  void bind_source(const ConfigNode& node) {
    for (const ConfigNode::Entry& entry : node.entries)
      if (auto source = create(spec_named(registry_.sources, entry.key), entry.value)) job_.source = std::move(source);
  }

  void bind_stage(const ConfigNode& node) {
    if (node.entries.size() != 1) return;
    const ConfigNode::Entry& entry = node.entries.front();
    auto stage = create(spec_named(registry_.stages, entry.key), entry.value);
    if (stage && stage->as_target())
      errors_.add(error_at(entry.value, "a target is for one output, and `stages` are for all",
                           "move this `quantize` to the outputs that it is meant for"));
    else if (stage)
      job_.stages.push_back(std::move(stage));
  }

  void bind_output(const ConfigNode& node) {
    JobOutput& output = job_.outputs.emplace_back();
    for (const ConfigNode::Entry& entry : node.entries) {
      if (const SinkSpec* sink = spec_named(registry_.sinks, entry.key)) {
        output.sink = create(sink, entry.value);
        output.origin = origin_of(entry.value);
      } else if (const StageSpec* stage = spec_named(registry_.stages, entry.key); stage && stage->per_output) {
        add_stage(*stage, entry.value, output.stages);
      }
    }
    read(output_options(), node, output);
  }

  void add_stage(const StageSpec& spec, const ConfigNode& value, StageList& stages) {
    if (auto stage = create(&spec, value)) stages.push_back(std::move(stage));
  }

  const Registry& registry_;
  const FaultyNodes& faulty_;
  Job& job_;
  Diagnostics& errors_;
};

// Returns a map without the values that have errors; of a list, only the items that have them are omitted.
ConfigNode without_faults(const ConfigNode& map, const FaultyNodes& faulty) {
  ConfigNode valid = map;
  valid.entries.clear();
  for (const ConfigNode::Entry& entry : map.entries) {
    if (!entry.value.is_list() && faulty.contains(&entry.value)) continue;
    ConfigNode& value = valid.entries.emplace_back(entry).value;
    value.items.clear();
    for (const ConfigNode& item : entry.value.items)
      if (!faulty.contains(&item)) value.items.push_back(item);
  }
  return valid;
}

// Reads the parts of a matrix that have no errors, so that the outputs made of them are checked as well. Reports a
// source beside it once, and removes that.
Matrix read_matrix(ConfigNode& root, const ConfigNode& node, const Registry& registry, Diagnostics& errors) {
  const Form<Matrix> form = matrix_form(registry);
  const FaultyNodes faulty = lint(node, form.spec, errors, registry.types);
  Matrix matrix;
  if (node.is_map()) matrix = form.read(without_faults(node, faulty)).value();
  if (const ConfigNode* source = root.find("source"))
    errors.add(error_at(*source, "'source' and 'matrix' cannot be given together",
                        "list the sources of a batch in matrix.sources"));
  return matrix;
}

// Report paths of a batch without a placeholder belong to a single report on all jobs. Moves them from `root` to
// `report`.
void take_report(ConfigNode& root, ReportRequest& report) {
  for (ConfigNode::Entry& entry : root.entries) {
    if (entry.key != "report") continue;
    std::erase_if(entry.value.entries, [&](const ConfigNode::Entry& form) {
      const bool is_path = form.key == "json" || form.key == "html";
      if (!is_path || !form.value.is_scalar() || form.value.scalar.find('{') != std::string::npos) return false;
      (form.key == "json" ? report.json : report.html) = form.value.scalar;
      return true;
    });
  }
  const bool is_taken = !report.json.empty() || !report.html.empty();
  std::erase_if(root.entries, [&](const ConfigNode::Entry& entry) {
    return is_taken && entry.key == "report" && entry.value.entries.empty();
  });
}

// Returns the job of a file that is not a batch.
std::optional<Job> only_job(std::optional<Batch> batch, Diagnostics& errors) {
  if (!batch) return {};
  if (!batch->is_matrix) return std::move(batch->jobs.front().job);
  errors.add(Error{ExitCode::kUsage, batch->file, "has a `matrix`: it is a batch of jobs, not one", "",
                   "use run, check, plan, status, or submit"});
  return {};
}

}  // namespace

std::optional<Batch> parse_batch(std::string_view text, const std::string& name, const Registry& registry,
                                 const JobOptions& options, Diagnostics& errors) {
  ConfigTexts texts;
  Diagnostics found;
  std::optional<ConfigNode> root = read_yaml(text, name, texts, found);
  const FieldSpec fields = job_fields(registry);
  Batch batch{name, false, {}, {}};
  if (root) {
    for (const std::string& argument : options.set) apply_override(*root, fields, argument, texts, found);
    substitute_parameters(*root, options.parameters, texts, found);
    std::optional<Matrix> matrix;
    if (const ConfigNode* node = root->find("matrix")) {
      batch.is_matrix = true;
      matrix = read_matrix(*root, *node, registry, found);
      take_report(*root, batch.report);
      // One beside the matrix has been reported; each job gets its own.
      std::erase_if(root->entries, [](const ConfigNode::Entry& entry) { return entry.key == "source"; });
    }
    for (const ExpandedJob& expanded : expand_matrix(*root, matrix, found)) {
      Diagnostics wrong;
      const FaultyNodes faulty = lint(expanded.root, fields, wrong, registry.types);
      check_placeholders(expanded.root, fields, registry, wrong);
      BatchJob& made = batch.jobs.emplace_back(BatchJob{expanded.source, {}});
      Binding(registry, faulty, made.job, wrong).bind(expanded.root);
      add_new(wrong, found);  // duplicates of several sources only once
      made.job.file = name;
      made.job.text = resolved_yaml_of(expanded.root);
      if (batch.is_matrix && !root->find("manifest")) made.job.manifest = true;
    }
  }
  for (Error& error : in_order(found.errors(), name)) errors.add(std::move(error));
  if (!found.empty()) return {};
  return batch;
}

std::optional<Job> parse_job(std::string_view text, const std::string& name, const Registry& registry,
                             const JobOptions& options, Diagnostics& errors) {
  return only_job(parse_batch(text, name, registry, options, errors), errors);
}

std::optional<Job> load_job(const std::string& path, const Registry& registry, const JobOptions& options,
                            Diagnostics& errors) {
  return only_job(load_batch(path, registry, options, errors), errors);
}

namespace {

// Opening a pipe would wait for somebody to write to it.
Result<std::string> read_pipeline_file(const std::string& path) {
  const auto failed = [&] {
    Error error = io_error(path, "read the pipeline file", errno);
    if (error.code == ExitCode::kIo) error.code = ExitCode::kUsage;
    return error;
  };
  FileStatus info;
  const Descriptor file = open_file(kCurrentFolder, path, kOpenRead | kOpenNoWaiting);
  if (!file || !get_status(file.get(), info)) return failed();
  if (info.is_folder()) return errno = EISDIR, failed();
  if (!info.is_file())
    return Error{ExitCode::kUsage, path, "a pipeline file is a regular file, and this is not", "",
                 "write the pipeline to a file: pipes and devices are not read"};
  std::string text(kReadAtMost, '\0');
  std::size_t done = 0;
  while (done < text.size()) {
    const auto read = [&] { return system_calls().read(file.get(), text.data() + done, text.size() - done, done); };
    const std::int64_t count = retry(read);
    if (count < 0) return failed();
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  text.resize(done);
  return text;
}

}  // namespace

std::optional<Batch> load_batch(const std::string& path, const Registry& registry, const JobOptions& options,
                                Diagnostics& errors) {
  const Result<std::string> text = read_pipeline_file(path);
  if (!text) {
    errors.add(text.error());
    return {};
  }
  std::optional<Batch> batch = parse_batch(text.value(), path, registry, options, errors);
  if (batch)
    for (BatchJob& each : batch->jobs) each.job.inputs.push_back(path);
  return batch;
}

}  // namespace ggufmill
