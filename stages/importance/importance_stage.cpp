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

Form<std::vector<Pattern>> patterns() {
  return list_of(regex().doc("Pattern to find anywhere in the tensor name (Perl syntax).")).at_least(1);
}

Form<ImportanceOptions> importance_form() {
  using Options = ImportanceOptions;
  return map_of<Options>(
             Fields<Options>{
                 field("file", &Options::file, path(), "Output of llama-imatrix: GGUF, or the legacy .dat format.")
                     .required()
                     .example("imatrix.gguf")} +
             fields_within(&Options::selection,
                           Fields<Selection>{
                               field("include", &Selection::include, patterns(),
                                     "Use only the data of tensors that match one of these patterns.")
                                   .example("[ffn]"),
                               field("exclude", &Selection::exclude, patterns(),
                                     "Skip the data of tensors that match one of these patterns.")
                                   .example("['attn_v']")
                                   .at(&Selection::exclude_origin),
                           }) +
             fields_within(&Options::policy,
                           Fields<CoveragePolicy>{
                               field("missing", &CoveragePolicy::missing,
                                     word<Missing>({{"error", Missing::kError}, {"unweighted", Missing::kUnweighted}}),
                                     "Whether a tensor without data is quantized unweighted or is an error; some types "
                                     "always require data.")
                                   .example("error"),
                               field("any_model", &CoveragePolicy::any_model,
                                     "Whether to accept a file whose data matches no tensor of the model, as "
                                     "llama-quantize does.")
                                   .example("true"),
                           }) +
             Fields<Options>{
                 field("record", &Options::record,
                       "Whether to record the importance file in the output, under the keys quantize.imatrix.*.")
                     .example("false")})
      .doc("Weights the columns of tensors by their importance; data is matched to tensors by name.")
      .example("{file: imatrix.gguf, missing: error}");
}

}  // namespace

Result<std::unique_ptr<Stage>> make_importance_stage(ImportanceOptions options, ModelOpener open) {
  if (!options.selection.include.empty() && !options.selection.exclude.empty())
    return error_at(options.selection.exclude_origin, "both include and exclude are given",
                    "give one of them: the tensors to use, or those to skip");
  return std::make_unique<ImportanceStage>(std::move(options), std::move(open));
}

StageSpec importance_stage(ModelOpener open) {
  return stage_spec("importance", importance_form(), [open = std::move(open)](ImportanceOptions options) {
    return make_importance_stage(std::move(options), open);
  });
}

}  // namespace ggufmill
