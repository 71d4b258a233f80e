// The field table of a pipeline file, with its own fields; those of sources, stages and sinks are in the registry.

#include <fmt/format.h>

#include "pipeline/config/cluster_fields.h"
#include "pipeline/config/job.h"
#include "pipeline/config/matrix.h"
#include "pipeline/config/parameters.h"
#include "pipeline/config/yaml_reader.h"

namespace ggufmill {
namespace {

constexpr int kVersion = 1;

// Returns an example as written inside { }: quoted if a plain scalar would end early there.
std::string in_flow(const std::string& example) {
  const bool plain = example.find_first_of("{[\"'") != 0;
  return plain && example.find_first_of("{}[],#") != std::string::npos ? "'" + example + "'" : example;
}

// Returns a map with one field and its own example: "{gguf: model.gguf}".
std::string example_map(const std::vector<FieldSpec>& fields) {
  if (fields.empty() || fields.front().example.empty()) return {};
  return fmt::format("{{{}: {}}}", fields.front().name, in_flow(fields.front().example));
}

std::string example_list(const FieldSpec& item) { return item.example.empty() ? "" : "[" + item.example + "]"; }

FieldSpec version_field() {
  return {.name = "version",
          .kind = FieldKind::kInteger,
          .doc = "Version of the file format.",
          .required = true,
          .example = fmt::format("{}", kVersion),
          .check = [](const ConfigNode& node) {
            return node.scalar == fmt::format("{}", kVersion)
                       ? ""
                       : fmt::format("version {} is not supported: this program reads version {}", node.scalar,
                                     kVersion);
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

FieldSpec stages_field(const Registry& registry) {
  FieldSpec stage{.kind = FieldKind::kMap, .doc = "One stage: its name and its settings."};
  for (const StageSpec& spec : registry.stages) {
    stage.fields.push_back(spec.field);
    stage.fields.back().group = "stage";
  }
  stage.example = example_map(stage.fields);
  return {.name = "stages",
          .kind = FieldKind::kList,
          .doc = "Stages applied to all outputs, in this order.",
          .example = example_list(stage),
          .item = {stage}};
}

FieldSpec reuse_field() {
  return {.name = "reuse",
          .kind = FieldKind::kPath,
          .doc =
              "First file or manifest of an earlier output. Tensors that this run would create from the same source, "
              "values, type, and importance are copied from it if they match the checksums in its manifest.",
          .example = "out/earlier.gguf"};
}

FieldSpec outputs_field(const Registry& registry) {
  FieldSpec output{.kind = FieldKind::kMap,
                   .doc = "One output: its destination, and the stages that apply to it alone, in the order written."};
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
          .doc = "Outputs to write. The source is read once for all of them.",
          .required = true,
          .example = example_list(output),
          .item = {output},
          .minimum = 1};
}

FieldSpec threads_field() {
  const FieldSpec automatic{.kind = FieldKind::kEnum, .doc = "As many as the machine allows.", .choices = {"auto"}};
  const FieldSpec number{
      .kind = FieldKind::kInteger, .doc = "Number of threads.", .minimum = 1, .maximum = Limits::kMostThreads};
  return {.name = "threads",
          .kind = FieldKind::kOneOf,
          .doc = "Number of conversion threads.",
          .default_text = "auto",
          .example = "8",
          .alternatives = {automatic, number}};
}

FieldSpec limits_field() {
  const FieldSpec memory{.name = "memory",
                         .kind = FieldKind::kBytes,
                         .doc =
                             "Tensor data held in memory at the same time, in bytes. Defaults to at most a quarter of "
                             "the memory of the machine or of the control group of this process.",
                         .default_text = "512MiB",
                         .example = "2GiB",
                         .minimum = 1 << 20};
  const FieldSpec nice{.name = "nice",
                       .kind = FieldKind::kInteger,
                       .doc = "Niceness: how far the run yields to other programs.",
                       .default_text = "0",
                       .example = "10",
                       .minimum = 0,
                       .maximum = Limits::kMostNice};
  const FieldSpec io{.name = "io",
                     .kind = FieldKind::kEnum,
                     .doc =
                         "cached uses the page cache; streaming uses it, but drops data that was read or written; "
                         "direct bypasses it (O_DIRECT). Defaults to streaming if input and outputs together exceed "
                         "half of the memory, otherwise to cached.",
                     .example = "streaming",
                     .choices = {io_mode_names().begin(), io_mode_names().end()}};
  return {.name = "limits",
          .kind = FieldKind::kMap,
          .doc = "Resource limits of a run.",
          .example = "{memory: 2GiB, threads: auto}",
          .fields = {memory, threads_field(), nice, io}};
}

FieldSpec report_field() {
  const FieldSpec error{
      .name = "error",
      .kind = FieldKind::kBool,
      .doc =
          "Measure the error of every converted tensor: root-mean-square and maximum error, cosine similarity and, "
          "with importance, the weighted error. Takes time, since the output is decoded again.",
      .default_text = "false",
      .example = "true"};
  const FieldSpec json{.name = "json",
                       .kind = FieldKind::kPath,
                       .doc =
                           "Path of the JSON report. If neither path is given, both reports are written next to the "
                           "first output, the JSON report with .report.json in place of .gguf.",
                       .example = "out/report.json"};
  const FieldSpec html{
      .name = "html",
      .kind = FieldKind::kPath,
      .doc = "Path of the HTML report, a single self-contained file. Its default follows that of json.",
      .example = "out/report.html"};
  return {.name = "report",
          .kind = FieldKind::kMap,
          .doc = "Report on the finished run: sizes, types, rules, time, and errors if requested.",
          .example = "{error: true, html: out/report.html}",
          .fields = {error, json, html}};
}

FieldSpec nonfinite_field() {
  FieldSpec field{.name = "nonfinite",
                  .kind = FieldKind::kEnum,
                  .doc =
                      "Handling of NaN and infinity in the source, and of quantized blocks with such a scale: error "
                      "stops the run; zero replaces them with 0 and reports where and how many; keep keeps them if the "
                      "output's type can represent them.",
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
          "Write next to each output OUTPUT.manifest.json, which lists the SHA-256 of every file, the XXH3 of every "
          "tensor, sources, recipe, and version, for `ggufmill verify`; and OUTPUT.sha256, for `sha256sum -c`.",
      .default_text = "false",
      .example = "true"};
}

FieldSpec verify_field() {
  return {.name = "verify",
          .kind = FieldKind::kBool,
          .doc =
              "For --skip-unchanged and batches: read an existing output and compare it with the checksums of its "
              "manifest before treating it as unchanged. Otherwise its size, header, and times are compared, and its "
              "checksums only if the file was touched since.",
          .default_text = "false",
          .example = "true"};
}

}  // namespace

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
                           nonfinite_field(), manifest_field(), verify_field(), cluster_field()}};
  for (const FieldSpec& field : job.fields)
    if (field.required || field.name == "source")
      job.example += fmt::format("{}{}: {}", job.example.empty() ? "{" : ", ", field.name, field.example);
  job.example += "}";
  return job;
}

}  // namespace ggufmill
