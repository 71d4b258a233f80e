#include "pipeline/config/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <limits>
#include <set>
#include <type_traits>

#include "pipeline/config/cluster_fields.h"
#include "pipeline/config/matrix.h"
#include "pipeline/config/overrides.h"
#include "pipeline/config/parameters.h"
#include "pipeline/config/yaml_reader.h"

namespace ggufmill {
namespace {

constexpr std::size_t kReadAtMost = (1 << 20) + 1;  // one byte more than the limit of a pipeline file

// Returns true if `node` on its own passes the lint of `field`.
bool passes(const ConfigNode& node, const FieldSpec& field, const Types& types) {
  Diagnostics found;
  lint(node, field, found, types);
  return found.empty();
}

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

// Creates the parts of a job from the nodes that pass the lint.
class Binding {
 public:
  Binding(const Registry& registry, Job& job, Diagnostics& errors) : registry_(registry), job_(job), errors_(errors) {}

  void bind(const ConfigNode& root) {
    if (const ConfigNode* source = root.find("source")) bind_source(*source);
    if (const ConfigNode* stages = root.find("stages"))
      for (const ConfigNode& item : stages->items) bind_stage(item);
    if (const ConfigNode* outputs = root.find("outputs"))
      for (const ConfigNode& item : outputs->items) bind_output(item);
    if (const ConfigNode* limits = root.find("limits")) bind_limits(*limits);
    if (const ConfigNode* report = root.find("report")) bind_report(*report);
    if (const ConfigNode* cluster = root.find("cluster"))
      if (passes(*cluster, cluster_field(), registry_.types)) job_.cluster = cluster_options(*cluster);
    if (const ConfigNode* nonfinite = root.find("nonfinite")) {
      const auto word = std::ranges::find(kNonfiniteWords, nonfinite->scalar);
      if (word != std::end(kNonfiniteWords))
        job_.nonfinite = static_cast<Nonfinite>(word - std::begin(kNonfiniteWords));
    }
    if (const ConfigNode* manifest = root.find("manifest"))
      if (const Result<bool> wanted = to_bool(*manifest)) job_.manifest = wanted.value();
    if (const ConfigNode* verify = root.find("verify"))
      if (const Result<bool> wanted = to_bool(*verify)) job_.verify = wanted.value();
  }

 private:
  // Returns the object that `spec` creates from a value that passes its lint. Returns null if there is no `spec`, if
  // the lint fails (its errors are reported elsewhere), or if creation fails, in which case the error is added.
  template <class Spec>
  auto made(const Spec* spec, const ConfigNode& value) {
    using Made = std::decay_t<decltype(spec->make(value).value())>;
    if (!spec || !passes(value, spec->field, registry_.types)) return Made();
    auto result = spec->make(value);
    if (result) return std::move(result).value();
    errors_.add(result.error());
    return Made();
  }

  void bind_source(const ConfigNode& node) {
    for (const ConfigNode::Entry& entry : node.entries)
      if (auto source = made(spec_named(registry_.sources, entry.key), entry.value)) job_.source = std::move(source);
  }

  void bind_stage(const ConfigNode& node) {
    if (node.entries.size() != 1) return;
    const ConfigNode::Entry& entry = node.entries.front();
    if (const StageSpec* stage = spec_named(registry_.stages, entry.key)) add_stage(*stage, entry.value, job_.stages);
  }

  void bind_output(const ConfigNode& node) {
    JobOutput& output = job_.outputs.emplace_back();
    for (const ConfigNode::Entry& entry : node.entries) {
      if (const SinkSpec* sink = spec_named(registry_.sinks, entry.key)) {
        output.sink = made(sink, entry.value);
        output.origin = origin_of(entry.value);
      } else if (entry.key == "reuse") {
        output.reuse = entry.value.scalar;
      } else {
        const StageSpec* stage = spec_named(registry_.stages, entry.key);
        if (stage && stage->per_output) add_stage(*stage, entry.value, output.stages);
      }
    }
  }

  void add_stage(const StageSpec& spec, const ConfigNode& value, StageList& stages) {
    if (auto stage = made(&spec, value)) stages.push_back(std::move(stage));
  }

  void bind_limits(const ConfigNode& node) {
    if (const ConfigNode* memory = node.find("memory"))
      if (const Result<std::uint64_t> bytes = to_bytes(*memory)) {
        job_.limits.memory = bytes.value();
        job_.limits.memory_is_given = true;
      }
    if (const ConfigNode* threads = node.find("threads")) job_.limits.threads = threads_of(*threads);
    if (const ConfigNode* nice = node.find("nice"))
      if (const Result<std::int64_t> number = to_integer(*nice))
        job_.limits.nice = static_cast<unsigned>(number.value());
    if (const ConfigNode* io = node.find("io")) job_.limits.io = io_mode_named(io->scalar);
  }

  void bind_report(const ConfigNode& node) {
    ReportRequest& report = job_.report.emplace();
    if (const ConfigNode* error = node.find("error"))
      if (const Result<bool> wanted = to_bool(*error)) report.error = wanted.value();
    if (const ConfigNode* json = node.find("json")) report.json = json->scalar;
    if (const ConfigNode* html = node.find("html")) report.html = html->scalar;
  }

  const Registry& registry_;
  Job& job_;
  Diagnostics& errors_;
};

// Checks those parts of a batch file that are not part of each of its jobs.
void check_matrix(const ConfigNode& root, const ConfigNode& matrix, const Registry& registry, Diagnostics& errors) {
  lint(matrix, matrix_field(registry), errors, registry.types);
  if (const ConfigNode* source = root.find("source"))
    errors.add(error_at(*source, "'source' and 'matrix' cannot be given together",
                        "list the sources of a batch in matrix.sources"));
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

unsigned threads_of(const ConfigNode& node) {
  const Result<std::int64_t> number = to_integer(node);
  return number ? static_cast<unsigned>(number.value()) : 0;
}

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
    if (const ConfigNode* matrix = root->find("matrix")) {
      batch.is_matrix = true;
      check_matrix(*root, *matrix, registry, found);
      take_report(*root, batch.report);
    }
    for (const ExpandedJob& expanded : expand_matrix(*root, found)) {
      Diagnostics wrong;
      lint(expanded.root, fields, wrong, registry.types);
      check_placeholders(expanded.root, fields, registry, wrong);
      BatchJob& made = batch.jobs.emplace_back(BatchJob{expanded.source, {}});
      Binding(registry, made.job, wrong).bind(expanded.root);
      add_new(wrong, found);  // duplicates of several sources only once
      made.job.file = name;
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

std::optional<Batch> load_batch(const std::string& path, const Registry& registry, const JobOptions& options,
                                Diagnostics& errors) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kReadAtMost, '\0');
  if (file) file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file && !file.eof()) {
    Error error = io_error(path, "read the pipeline file", errno);
    if (error.code == ExitCode::kIo) error.code = ExitCode::kUsage;
    errors.add(std::move(error));
    return {};
  }
  text.resize(static_cast<std::size_t>(file.gcount()));
  std::optional<Batch> batch = parse_batch(text, path, registry, options, errors);
  if (batch)
    for (BatchJob& each : batch->jobs) each.job.inputs.push_back(path);
  return batch;
}

}  // namespace ggufmill
