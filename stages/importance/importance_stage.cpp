#include "stages/importance/importance_stage.h"

#include <fmt/format.h>

#include <cmath>

#include "pipeline/core/text.h"
#include "stages/importance/covariance_coverage.h"
#include "stages/importance/merged_importance.h"

namespace ggufmill {
namespace {

class ImportanceStage : public ComputedImportanceStage {
 public:
  ImportanceStage(ImportanceOptions options, ModelOpener open) : options_(std::move(options)), open_(std::move(open)) {}

  const ComputedImportanceStage* as_computed_importance() const override { return options_.compute ? this : nullptr; }
  const ImportanceComputation& computation() const override { return *options_.compute; }
  std::unique_ptr<Stage> with_result(const std::string& file) const override {
    ImportanceOptions options = options_;
    options.compute.reset();
    options.file = file;
    return std::make_unique<ImportanceStage>(std::move(options), open_);
  }
  std::unique_ptr<Stage> with_computation(ImportanceComputation computation) const override {
    ImportanceOptions options = options_;
    options.compute = std::move(computation);
    return std::make_unique<ImportanceStage>(std::move(options), open_);
  }

  Result<Model> apply(Model model) const override {
    if (options_.compute) {
      assume_importance(model);
      model.notes.set(notes::kImportanceGiven, true);
      model.problems.push_back(uncomputed(*options_.compute));
      return model;
    }
    std::vector<WeightedFile> files;
    std::optional<CovarianceFile> covariance;
    if (!options_.covariance.empty()) {
      auto file = open_covariance(options_.covariance, open_);
      if (!file)
        return named_at(options_.covariance_origin, file.error(),
                        "check the path; ggufmill-calibrate writes such files");
      covariance = std::move(file).value();
      files.push_back({covariance->importance, 1});
      model.notes.set(notes::kCovarianceGiven, true);
    }
    for (const ImportancePart& part : covariance ? std::vector<ImportancePart>() : parts()) {
      auto file = open_importance(part.path, open_);
      if (!file) return named_at(part.origin, file.error(), "check the path; llama-imatrix writes such files");
      files.push_back({std::move(file).value(), part.weight});
    }
    const std::uint32_t chunk_size = chunk_size_of(files);
    BOOST_OUTCOME_TRY(warn_of_idle_patterns(files, model));
    for (WeightedFile& each : files) {
      BOOST_OUTCOME_TRY(select_entries(options_.selection, each.file));
      check_model(each.file, options_.policy.any_model, "to allow it: any_model: true", model);
    }
    BOOST_OUTCOME_TRY(const MergedImportance data,
                      files.size() == 1 ? alone(files[0].file) : add_up(files, chunk_size));
    if (data.entries.empty()) {
      model.warnings.push_back(fmt::format("{}: include or exclude leaves no entries", data.path));
      return model;
    }
    BOOST_OUTCOME_TRY(attach_importance(data, options_.selection, options_.policy, model));
    model.notes.set(notes::kImportanceGiven, true);
    if (covariance) {
      BOOST_OUTCOME_TRY(attach_covariance(*covariance, model));
    }
    if (options_.record)
      for (MetadataEntry& entry : metadata_of(data.summary()))
        model.metadata.set_at_end(std::move(entry.key), std::move(entry.value));
    return model;
  }

  std::vector<std::string> inputs() const override {
    if (options_.compute) return {options_.compute->text};
    std::vector<std::string> paths;
    for (const ImportancePart& part : parts()) {
      const Result<ImportanceFile> file = open_importance(part.path, open_);
      const std::vector<std::string> more = file ? file.value().files : std::vector<std::string>{part.path};
      paths.insert(paths.end(), more.begin(), more.end());
    }
    return paths;
  }

 private:
  std::vector<ImportancePart> parts() const {
    if (!options_.files.empty()) return options_.files;
    if (!options_.covariance.empty()) return {{options_.covariance, 1, options_.covariance_origin}};
    return {{options_.file, 1, options_.file_origin}};
  }

  Status warn_of_idle_patterns(const std::vector<WeightedFile>& files, Model& model) const {
    std::vector<std::string_view> names;
    std::string paths;
    for (const WeightedFile& each : files) {
      paths += (paths.empty() ? "" : ", ") + each.file.path;
      for (const ImportanceEntry& entry : each.file.entries) names.push_back(entry.name);
    }
    BOOST_OUTCOME_TRY(const std::vector<std::string> idle, options_.selection.idle(names));
    for (const std::string& text : idle)
      model.warnings.push_back(fmt::format("{}: no entry matches {}", paths, quoted_name(text)));
    return ok();
  }

  ImportanceOptions options_;
  ModelOpener open_;
};

std::string check_weight(const ConfigNode& node) {
  const Result<double> weight = number().read(node);
  return weight && std::isfinite(weight.value()) && weight.value() > 0 ? "" : "a weight is a number above 0";
}

Form<std::vector<Pattern>> patterns() {
  return list_of(regex().doc("Pattern to find anywhere in the tensor name (Perl syntax).")).at_least(1);
}

Form<ImportancePart> part_form() {
  auto map =
      map_of<ImportancePart>({field("path", &ImportancePart::path, path(), "The file.").required().example("a.gguf"),
                              field("weight", &ImportancePart::weight, number().checked(check_weight),
                                    "Factor for its sums and counts. Ignored if there is only one file.")
                                  .example("2")});
  return either<ImportancePart>(shorthand(&ImportancePart::path, path()), std::move(map)).at(&ImportancePart::origin);
}

Form<ImportanceOptions> importance_form() {
  using Options = ImportanceOptions;
  return map_of<Options>(
             Fields<Options>{
                 field("file", &Options::file, path(), "Output of llama-imatrix: GGUF, or the legacy .dat format.")
                     .group("importance")
                     .example("imatrix.gguf")
                     .at(&Options::file_origin),
                 field("files", &Options::files, list_of(part_form()).at_least(1),
                       "Several such files of one model, for example of several texts. Their sums and counts are added "
                       "up, as `imatrix merge` does.")
                     .group("importance")
                     .example("[{path: code.gguf, weight: 2}, prose.gguf]"),
                 field("covariance", &Options::covariance, path(),
                       "A covariance file of ggufmill-calibrate, which also has the importance. Unless an encoder is "
                       "named, levels are chosen with it: `encoder: covariance`.")
                     .group("importance")
                     .example("model.covariance.gguf")
                     .at(&Options::covariance_origin),
                 field("compute", &Options::compute, computation_form(),
                       "Compute the importance with llama-imatrix from an output of this job.")
                     .group("importance")
                     .example("{text: calibration.txt, chunks: 200}")} +
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
                                     word<Missing>({{"error", Missing::kError},
                                                    {"none", Missing::kNone},
                                                    {"mean", Missing::kMean},
                                                    {"neighbours", Missing::kNeighbours}}),
                                     "What is used for experts that saw too few tokens, and for tensors without data. "
                                     "Except with `none`, data that is all zeros counts as missing. "
                                     "`none`: no importance, as in llama-quantize; some types always require data. "
                                     "`mean`: experts get the mean of the others of their tensor. `neighbours`: as "
                                     "`mean`, and tensors get the data of the same tensor in the nearest layer, or the "
                                     "mean of two that are equally near. `error`: they are errors.")
                                   .example("neighbours"),
                               field("least_counts", &CoveragePolicy::least_counts,
                                     "Number of tokens that an expert must have seen for its data to be used. Files in "
                                     "the legacy format count chunks, of 512 tokens each, for all experts together.")
                                   .at_least(1)
                                   .example("100"),
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
