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

constexpr std::size_t kReadAtMost = (1 << 20) + 1;  // one more than a pipeline file may have

// Whether `node` is right by itself.
bool passes(const ConfigNode& node, const FieldSpec& field, const Types& types) {
  Diagnostics found;
  lint(node, field, found, types);
  return found.empty();
}

// Line and column at the end of an error's `where`. What is of the command line comes first, of no place last.
std::pair<int, int> place_of(const Error& error, const std::string& name) {
  std::pair<int, int> place{error.where.empty() ? std::numeric_limits<int>::max() : 0, 0};
  if (error.where.compare(0, name.size() + 1, name + ":") == 0)
    std::sscanf(error.where.c_str() + name.size(), ":%d:%d", &place.first, &place.second);
  return place;
}

// In the order of the file: what is found by different steps stands together.
std::vector<Error> in_order(std::vector<Error> errors, const std::string& name) {
  std::stable_sort(errors.begin(), errors.end(),
                   [&](const Error& a, const Error& b) { return place_of(a, name) < place_of(b, name); });
  return errors;
}

// Adds `found` but for what is already said of the same place: a parameter without a value is also no valid size.
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

// Makes the parts of a job out of what passes the lint.
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
  }

 private:
  // What `spec`, where there is one, makes of a value that passes its lint; null, and the errors told, when that fails.
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

// ---- the field table of a pipeline file: its own fields, the rest from the registry ----

constexpr int kVersion = 1;

// An example as it stands within { }: quoted where a plain text would end there.
std::string in_flow(const std::string& example) {
  const bool plain = example.find_first_of("{[\"'") != 0;
  return plain && example.find_first_of("{}[],#") != std::string::npos ? "'" + example + "'" : example;
}

// "{gguf: model.gguf}": a map of one field, by its own example.
std::string example_map(const std::vector<FieldSpec>& fields) {
  if (fields.empty() || fields.front().example.empty()) return {};
  return fmt::format("{{{}: {}}}", fields.front().name, in_flow(fields.front().example));
}

std::string example_list(const FieldSpec& item) { return item.example.empty() ? "" : "[" + item.example + "]"; }

FieldSpec version_field() {
  return {.name = "version",
          .kind = FieldKind::kInteger,
          .doc = "The version of the file's format.",
          .required = true,
          .example = fmt::format("{}", kVersion),
          .check = [](const ConfigNode& node) {
            return node.scalar == fmt::format("{}", kVersion)
                       ? ""
                       : fmt::format("version {} is not known: this program reads version {}", node.scalar, kVersion);
          }};
}

FieldSpec source_field(const Registry& registry) {
  FieldSpec source{.name = "source", .kind = FieldKind::kMap, .doc = "The model to read.", .group = "read"};
  for (const SourceSpec& spec : registry.sources) {
    source.fields.push_back(spec.field);
    source.fields.back().group = "source";
  }
  source.example = example_map(source.fields);
  return source;
}

FieldSpec read_matrix_field(const Registry& registry) {
  FieldSpec matrix = matrix_field(registry);
  matrix.group = "read";
  return matrix;
}

// Of a batch's file what is not in each of its jobs.
void check_matrix(const ConfigNode& root, const ConfigNode& matrix, const Registry& registry, Diagnostics& errors) {
  lint(matrix, matrix_field(registry), errors, registry.types);
  if (const ConfigNode* source = root.find("source"))
    errors.add(error_at(*source, "'source' stands beside 'matrix'", "a batch's sources are those of matrix.sources"));
}

FieldSpec stages_field(const Registry& registry) {
  FieldSpec stage{.kind = FieldKind::kMap, .doc = "One stage: its name and what it is to do."};
  for (const StageSpec& spec : registry.stages) {
    stage.fields.push_back(spec.field);
    stage.fields.back().group = "stage";
  }
  stage.example = example_map(stage.fields);
  return {.name = "stages",
          .kind = FieldKind::kList,
          .doc = "What is done for all outputs, in this order.",
          .example = example_list(stage),
          .item = {stage}};
}

FieldSpec reuse_field() {
  return {.name = "reuse",
          .kind = FieldKind::kPath,
          .doc =
              "An earlier output, its first file or its manifest: tensors that this run would make of the same source, "
              "values, type and importance are copied from it, once they have the checksums that its manifest says.",
          .example = "out/earlier.gguf"};
}

FieldSpec outputs_field(const Registry& registry) {
  FieldSpec output{.kind = FieldKind::kMap,
                   .doc = "One output: where it goes, and the stages of it alone in the order written."};
  for (const SinkSpec& spec : registry.sinks) {
    output.fields.push_back(spec.field);
    output.fields.back().group = "sink";
  }
  output.example = example_map(output.fields);
  for (const StageSpec& spec : registry.stages)
    if (spec.per_output) output.fields.push_back(spec.field);
  output.fields.push_back(reuse_field());
  return {.name = "outputs",
          .kind = FieldKind::kList,
          .doc = "What is written: one read of the source feeds all of them.",
          .required = true,
          .example = example_list(output),
          .item = {output},
          .minimum = 1};
}

FieldSpec threads_field() {
  const FieldSpec automatic{.kind = FieldKind::kEnum, .doc = "As many as the machine gives.", .choices = {"auto"}};
  const FieldSpec number{.kind = FieldKind::kInteger, .doc = "So many.", .minimum = 1, .maximum = Limits::kMostThreads};
  return {.name = "threads",
          .kind = FieldKind::kOneOf,
          .doc = "Threads that convert.",
          .default_text = "auto",
          .example = "8",
          .alternatives = {automatic, number}};
}

FieldSpec limits_field() {
  const FieldSpec memory{.name = "memory",
                         .kind = FieldKind::kBytes,
                         .doc =
                             "Bytes of tensor data held at once. By default at most a quarter of what the machine, or "
                             "the control group of this process, has.",
                         .default_text = "512MiB",
                         .example = "2GiB",
                         .minimum = 1 << 20};
  const FieldSpec nice{.name = "nice",
                       .kind = FieldKind::kInteger,
                       .doc = "How much the run gives way to other programs.",
                       .default_text = "0",
                       .example = "10",
                       .minimum = 0,
                       .maximum = Limits::kMostNice};
  const FieldSpec io{.name = "io",
                     .kind = FieldKind::kEnum,
                     .doc =
                         "Through the page cache; through it, but what was read or written once is dropped behind; or "
                         "past it (O_DIRECT). By default streaming where input and outputs together are more than half "
                         "of the memory, else cached.",
                     .example = "streaming",
                     .choices = {io_mode_names().begin(), io_mode_names().end()}};
  return {.name = "limits",
          .kind = FieldKind::kMap,
          .doc = "What a run may use.",
          .example = "{memory: 2GiB, threads: auto}",
          .fields = {memory, threads_field(), nice, io}};
}

FieldSpec report_field() {
  const FieldSpec error{.name = "error",
                        .kind = FieldKind::kBool,
                        .doc =
                            "Whether to measure what every converted tensor lost: root-mean-square and largest error, "
                            "cosine similarity, with importance the weighted error. Takes time: what was written is "
                            "decoded again.",
                        .default_text = "false",
                        .example = "true"};
  const FieldSpec json{.name = "json",
                       .kind = FieldKind::kPath,
                       .doc =
                           "The file for programs; where neither path is given, the first output's with .report.json "
                           "in place of .gguf, and the page as well.",
                       .example = "out/report.json"};
  const FieldSpec html{.name = "html",
                       .kind = FieldKind::kPath,
                       .doc = "The page for people, one file that needs no network; its default is like that of json.",
                       .example = "out/report.html"};
  return {.name = "report",
          .kind = FieldKind::kMap,
          .doc = "Tells about the run, when it is done: sizes, types, rules, time, and errors where asked for.",
          .example = "{error: true, html: out/report.html}",
          .fields = {error, json, html}};
}

FieldSpec nonfinite_field() {
  FieldSpec field{
      .name = "nonfinite",
      .kind = FieldKind::kEnum,
      .doc =
          "What is done with NaN and infinity in the source, and with quantized blocks whose scale is one of "
          "them: an error; zero, which makes them 0 and says where and how many; keep, where the output's "
          "type can hold them.",
      .default_text = "error",
      .example = "zero"};
  for (const std::string_view word : kNonfiniteWords) field.choices.emplace_back(word);
  return field;
}

FieldSpec manifest_field() {
  return {
      .name = "manifest",
      .kind = FieldKind::kBool,
      .doc =
          "Writes beside each output OUTPUT.manifest.json, with SHA-256 of every file, XXH3 of every tensor, sources, "
          "recipe and version, which `ggufmill verify` reads, and OUTPUT.sha256, which `sha256sum -c` reads.",
      .default_text = "false",
      .example = "true"};
}

// Paths of a batch's report without {name} are those of one report of all; they are taken from `root`.
void take_report(ConfigNode& root, ReportRequest& report) {
  for (ConfigNode::Entry& entry : root.entries) {
    if (entry.key != "report") continue;
    std::erase_if(entry.value.entries, [&](const ConfigNode::Entry& form) {
      const bool is_path = form.key == "json" || form.key == "html";
      if (!is_path || !form.value.is_scalar() || form.value.scalar.find("{name}") != std::string::npos) return false;
      (form.key == "json" ? report.json : report.html) = form.value.scalar;
      return true;
    });
  }
  const bool is_taken = !report.json.empty() || !report.html.empty();
  std::erase_if(root.entries, [&](const ConfigNode::Entry& entry) {
    return is_taken && entry.key == "report" && entry.value.entries.empty();
  });
}

// The job of a file that is no batch.
std::optional<Job> only_job(std::optional<Batch> batch, Diagnostics& errors) {
  if (!batch) return {};
  if (!batch->is_matrix) return std::move(batch->jobs.front().job);
  errors.add(Error{ExitCode::kUsage, batch->file, "has a `matrix`: it is a batch of jobs, not one", "",
                   "run, check, plan, status and submit take it"});
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
      BatchJob& made = batch.jobs.emplace_back(BatchJob{expanded.source, {}});
      Binding(registry, made.job, wrong).bind(expanded.root);
      add_new(wrong, found);  // of several sources once
      made.job.file = name;
      if (batch.is_matrix && !root->find("manifest")) made.job.manifest = true;
    }
  }
  for (Error& error : in_order(found.errors(), name)) errors.add(std::move(error));
  if (!found.empty()) return {};
  std::erase_if(batch.jobs, [](const BatchJob& each) { return each.job.outputs.empty(); });  // all excluded
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
    error.code = ExitCode::kUsage;
    errors.add(std::move(error));
    return {};
  }
  text.resize(static_cast<std::size_t>(file.gcount()));
  std::optional<Batch> batch = parse_batch(text, path, registry, options, errors);
  if (batch)
    for (BatchJob& each : batch->jobs) each.job.inputs.push_back(path);
  return batch;
}

Result<unsigned> parse_threads(const std::string& text) {
  constexpr std::string_view kOption = "--threads ";
  const ConfigText shown{"--threads", {std::string(kOption) + text}, false};
  Diagnostics errors;
  const std::optional<ConfigNode> node = read_yaml_value(kOption.size(), shown, errors);
  if (node) lint(*node, threads_field(), errors);
  if (!errors.empty()) return errors.together();
  return threads_of(*node);
}

FieldSpec job_fields(const Registry& registry) {
  FieldSpec job{.kind = FieldKind::kMap,
                .doc = "A ggufmill pipeline file.",
                .fields = {version_field(), parameters_field(), source_field(registry), read_matrix_field(registry),
                           stages_field(registry), outputs_field(registry), limits_field(), report_field(),
                           nonfinite_field(), manifest_field(), cluster_field()}};
  for (const FieldSpec& field : job.fields)
    if (field.required || field.name == "source")
      job.example += fmt::format("{}{}: {}", job.example.empty() ? "{" : ", ", field.name, field.example);
  job.example += "}";
  return job;
}

}  // namespace ggufmill
