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

FieldSpec verify_field() {
  return {
      .name = "verify",
      .kind = FieldKind::kBool,
      .doc =
          "For --skip-unchanged and batches: an output that is already there is read and compared with the checksums "
          "of its manifest before it counts as unchanged. Without: its size, header, and times are compared, and "
          "the checksums where something has touched the file since.",
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
