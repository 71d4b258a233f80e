// The field table of a pipeline file, with its own fields; those of sources, stages and sinks are in the registry.

#include <fmt/format.h>

#include "pipeline/config/job.h"
#include "pipeline/config/matrix.h"
#include "pipeline/config/parameters.h"
#include "pipeline/core/text.h"

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

FieldSpec matrix_field(const Registry& registry) {
  FieldSpec matrix = matrix_form(registry).spec;
  matrix.name = "matrix";
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
  for (const AnyForm& field : output_options().list) output.fields.push_back(field.spec);
  return {.name = "outputs",
          .kind = FieldKind::kList,
          .doc = "Outputs to write. The source is read once for all of them.",
          .required = true,
          .example = example_list(output),
          .item = {output},
          .minimum = 1};
}

Form<Spool> spool_form() {
  Form<Spool> full = map_of<Spool>({
      field("folder", &Spool::folder, path(), "An existing folder.").required().example("/scratch"),
      field("size", &Spool::size, bytes(), "Most bytes in it at a time.").example("100GiB"),
  });
  return either<Spool>(shorthand(&Spool::folder, path().doc("The folder.")),
                       std::move(full).doc("The folder and its bound."));
}

Form<Limits> limits_form() {
  return map_of<Limits>({
      field("memory", &Limits::memory, bytes().at_least(1 << 20),
            "Tensor data held in memory at the same time, in bytes. Defaults to at most a quarter of the memory of the "
            "machine or of the control group of this process.")
          .shown_default(format_bytes(Limits::kDefaultMemory))
          .example("2GiB"),
      field("threads", &Limits::threads, threads_form(), "Number of conversion threads.").example("8"),
      field("nice", &Limits::nice, "Niceness: how far the run yields to other programs.")
          .example("10")
          .at_most(Limits::kMaxNice),
      field(
          "io", &Limits::io, io_form(),
          "cached uses the page cache; streaming uses it, but drops data that was read or written; direct bypasses it "
          "(O_DIRECT). Defaults to streaming if input and outputs together exceed half of the memory, otherwise to "
          "cached.")
          .example("streaming"),
      field(
          "spool", &Limits::spool, spool_form(),
          "For outputs on object stores: where parts wait that are not yet complete and do not fit into memory, which "
          "happens if tensors are written in another order than they are read. Defaults to none.")
          .example("/scratch"),
  });
}

Form<ReportRequest> report_form() {
  return map_of<ReportRequest>({
      field("error", &ReportRequest::error,
            "Measure the error of every converted tensor: root-mean-square and maximum error, cosine similarity and, "
            "with importance, the weighted error. Takes time, since the output is decoded again.")
          .example("true"),
      field("json", &ReportRequest::json, path(),
            "Path of the JSON report. If neither path is given, both reports are written next to the first output, the "
            "JSON report with .report.json in place of .gguf.")
          .example("out/report.json"),
      field("html", &ReportRequest::html, path(),
            "Path of the HTML report, a single self-contained file. Its default follows that of json.")
          .example("out/report.html"),
  });
}

}  // namespace

Form<unsigned> threads_form() {
  return either<unsigned>(word<unsigned>({{"auto", 0u}}).doc("As many as the machine allows."),
                          integer<unsigned>().doc("Number of threads.").at_least(1).at_most(Limits::kMaxThreads));
}

Form<IoMode> io_form() { return enumeration<IoMode>(io_mode_names()); }

const Fields<JobOutput>& output_options() {
  static const Fields<JobOutput> fields =
      Fields<JobOutput>{
          field("part", &JobOutput::part, enumeration<ModelPart>(kModelPartWords),
                "Part of the checkpoint that the output contains: the text model, the projector with the encoders of "
                "images and sound, or the layers that predict further tokens. Defaults to that of the source.")
              .at(&JobOutput::part_origin)
              .example("projector"),
          field("outtype", &JobOutput::out_type, enumeration<OutType>(kOutTypeWords),
                "Type of tensors with two or more dimensions before any quantization. Defaults to that of the source.")
              .at(&JobOutput::part_origin)
              .example("f16"),
          field("reuse", &JobOutput::reuse, path(),
                "First file or manifest of an earlier output. Tensors that this run would create from the same source, "
                "values, type, and importance are copied from it if they match the checksums in its manifest.")
              .example("out/earlier.gguf")} +
      fields_within(&JobOutput::sections, output_section_fields());
  return fields;
}

const Fields<Job>& job_options() {
  static const Fields<Job> fields =
      Fields<Job>{
          field("limits", &Job::limits, limits_form(), "Resource limits of a run.")
              .example("{memory: 2GiB, threads: auto}"),
          field("report", &Job::report, report_form(),
                "Report on the finished run: sizes, types, rules, time, and errors if requested.")
              .example("{error: true, html: out/report.html}"),
          field(
              "nonfinite", &Job::nonfinite, enumeration<Nonfinite>(kNonfiniteWords),
              "Handling of NaN and infinity in the source, and of quantized blocks with such a scale: error stops the "
              "run; zero replaces them with 0 and reports where and how many; keep keeps them if the output's type can "
              "represent them.")
              .example("zero"),
          field("manifest", &Job::manifest,
                "Write next to each output OUTPUT.manifest.json, which lists the SHA-256 of every file, the XXH3 of "
                "every "
                "tensor, sources, recipe, and version, for `ggufmill verify`; and OUTPUT.sha256, for `sha256sum -c`.")
              .example("true"),
          field("verify", &Job::verify,
                "For --skip-unchanged and batches: read an existing output and compare it with the checksums of its "
                "manifest before treating it as unchanged. Otherwise its size, header, and times are compared, and its "
                "checksums only if the file was touched since.")
              .example("true")} +
      fields_within(&Job::sections, job_section_fields()) +
      Fields<Job>{
          field("cluster", &Job::cluster, cluster_form(),
                "How `ggufmill submit` runs the job on a cluster; see pipeline/cluster/README.md.")
              .example("{partition: batch, parts: 32, cpus: 16, memory: 8GiB, time: '2:00:00'}"),
      };
  return fields;
}

bool decides_bytes(std::string_view option) { return option == "part" || option == "outtype" || option == "nonfinite"; }

FieldSpec job_fields(const Registry& registry) {
  FieldSpec job{.kind = FieldKind::kMap,
                .doc = "A ggufmill pipeline file.",
                .fields = {version_field(), parameters_field(), source_field(registry), matrix_field(registry),
                           stages_field(registry), outputs_field(registry)}};
  for (const AnyForm& field : job_options().list) job.fields.push_back(field.spec);
  for (const FieldSpec& field : job.fields)
    if (field.required || field.name == "source")
      job.example += fmt::format("{}{}: {}", job.example.empty() ? "{" : ", ", field.name, field.example);
  job.example += "}";
  return job;
}

}  // namespace ggufmill
