#include "stages/importance/importance_stage.h"

#include <fmt/format.h>

#include "pipeline/core/text.h"
#include "stages/importance/importance_file.h"

namespace ggufmill {
namespace {

class ImportanceStage : public Stage {
 public:
  ImportanceStage(ImportanceOptions options, ModelOpener open) : options_(std::move(options)), open_(std::move(open)) {}

  Result<Model> apply(Model model) const override {
    BOOST_OUTCOME_TRY(ImportanceFile file, open_importance(options_.file, open_));
    BOOST_OUTCOME_TRY(warn_of_idle_patterns(file, model));
    BOOST_OUTCOME_TRY(select_entries(options_.selection, file));
    if (file.entries.empty()) {
      model.warnings.push_back(fmt::format("{}: include or exclude leaves no entries", options_.file));
      return model;
    }
    BOOST_OUTCOME_TRY(attach_importance(file, options_.selection, options_.policy, model));
    model.notes.set(notes::kImportanceGiven, true);
    if (options_.record)
      for (MetadataEntry& entry : metadata_of(summary_of(file)))
        model.metadata.set_at_end(std::move(entry.key), std::move(entry.value));
    return model;
  }

  std::vector<std::string> inputs() const override {
    const Result<ImportanceFile> file = open_importance(options_.file, open_);
    return file ? file.value().files : std::vector<std::string>{options_.file};
  }

 private:
  Status warn_of_idle_patterns(const ImportanceFile& file, Model& model) const {
    std::vector<std::string_view> names;
    for (const ImportanceEntry& entry : file.entries) names.push_back(entry.name);
    BOOST_OUTCOME_TRY(const std::vector<std::string> idle, options_.selection.idle(names));
    for (const std::string& text : idle)
      model.warnings.push_back(fmt::format("{}: no entry matches {}", file.path, quoted_name(text)));
    return ok();
  }

  ImportanceOptions options_;
  ModelOpener open_;
};

Result<std::vector<Pattern>> read_patterns(const ConfigNode* list) {
  std::vector<Pattern> patterns;
  if (!list) return patterns;
  for (const ConfigNode& item : list->items) {
    BOOST_OUTCOME_TRY(patterns.emplace_back(), to_pattern(item));
  }
  return patterns;
}

Result<ImportanceOptions> read_options(const ConfigNode& value) {
  ImportanceOptions options;
  options.file = value.find("file")->scalar;
  const ConfigNode* exclude = value.find("exclude");
  if (exclude && value.find("include"))
    return error_at(*exclude, "both include and exclude are given",
                    "give one of them: the tensors to use, or those to skip");
  BOOST_OUTCOME_TRY(options.selection.include, read_patterns(value.find("include")));
  BOOST_OUTCOME_TRY(options.selection.exclude, read_patterns(exclude));
  if (const ConfigNode* missing = value.find("missing"); missing && missing->scalar == "error")
    options.policy.missing = Missing::kError;
  if (const ConfigNode* any_model = value.find("any_model")) {
    BOOST_OUTCOME_TRY(options.policy.any_model, to_bool(*any_model));
  }
  if (const ConfigNode* record = value.find("record")) {
    BOOST_OUTCOME_TRY(options.record, to_bool(*record));
  }
  return options;
}

FieldSpec patterns_field(std::string name, std::string doc, std::string example) {
  const FieldSpec pattern{.kind = FieldKind::kRegex,
                          .doc = "Pattern to find anywhere in the tensor name (Perl syntax)."};
  return {.name = std::move(name),
          .kind = FieldKind::kList,
          .doc = std::move(doc),
          .example = std::move(example),
          .item = {pattern},
          .minimum = 1};
}

FieldSpec importance_fields() {
  const FieldSpec file{.name = "file",
                       .kind = FieldKind::kPath,
                       .doc = "Output of llama-imatrix: GGUF, or the legacy .dat format.",
                       .required = true,
                       .example = "imatrix.gguf"};
  const FieldSpec missing{
      .name = "missing",
      .kind = FieldKind::kEnum,
      .doc = "Whether a tensor without data is quantized unweighted or is an error; some types always require data.",
      .default_text = "unweighted",
      .example = "error",
      .choices = {"error", "unweighted"}};
  const FieldSpec any_model{
      .name = "any_model",
      .kind = FieldKind::kBool,
      .doc = "Whether to accept a file whose data matches no tensor of the model, as llama-quantize does.",
      .default_text = "false",
      .example = "true"};
  const FieldSpec record{
      .name = "record",
      .kind = FieldKind::kBool,
      .doc = "Whether to record the importance file in the output, under the keys quantize.imatrix.*.",
      .default_text = "true",
      .example = "false"};
  return {
      .name = "importance",
      .kind = FieldKind::kMap,
      .doc = "Weights the columns of tensors by their importance; data is matched to tensors by name.",
      .example = "{file: imatrix.gguf, missing: error}",
      .fields = {file,
                 patterns_field("include", "Use only the data of tensors that match one of these patterns.", "[ffn]"),
                 patterns_field("exclude", "Skip the data of tensors that match one of these patterns.", "['attn_v']"),
                 missing, any_model, record}};
}

}  // namespace

std::unique_ptr<Stage> make_importance_stage(ImportanceOptions options, ModelOpener open) {
  return std::make_unique<ImportanceStage>(std::move(options), std::move(open));
}

StageSpec importance_stage(ModelOpener open) {
  auto make = [open = std::move(open)](const ConfigNode& value) -> Result<std::unique_ptr<Stage>> {
    BOOST_OUTCOME_TRY(ImportanceOptions options, read_options(value));
    return make_importance_stage(std::move(options), open);
  };
  return {importance_fields(), true, std::move(make)};
}

}  // namespace ggufmill
