#include "pipeline/api/publish/card_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "pipeline/api/fit.h"
#include "pipeline/api/publish/card/job_text.h"
#include "pipeline/api/publish/quality.h"
#include "pipeline/core/text.h"
#include "pipeline/io/json_file.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/source_path.h"
#include "stages/huggingface/map/added_maps.h"

namespace ggufmill {
namespace {

constexpr std::uint64_t kMaxBytes = 16 << 20;  // of a template, a card or a pipeline file

// Returns the key with the largest value; an empty one if there is none.
std::string largest(const std::map<std::string, std::uint64_t>& bytes) {
  const auto found = std::ranges::max_element(bytes, {}, [](const auto& each) { return each.second; });
  return found == bytes.end() ? "" : found->first;
}

// Returns the recipe, or the type of most of the bytes.
std::string type_of(const PlannedOutput& planned) {
  if (!planned.recipe.empty()) return planned.recipe;
  std::map<std::string, std::uint64_t> bytes;
  for (const PlannedTensor& tensor : planned.tensors) bytes[std::string(tensor.type->name)] += tensor.bytes;
  return largest(bytes);
}

std::string encoder_of(const Manifest& manifest) {
  std::map<std::string, std::uint64_t> bytes;
  for (const ManifestFile& file : manifest.files)
    for (const ManifestTensor& tensor : file.tensors)
      if (!tensor.encoder.empty()) bytes[tensor.encoder] += tensor.bytes;
  return largest(bytes);
}

// Returns the name on the hub of what was read from there or is uploaded to it: "ORG/NAME" for
// hf://ORG/NAME@REVISION/FILE.
std::string hub_name(const std::string& path) {
  constexpr std::string_view kHub = "hf://";
  if (!path.starts_with(kHub)) return {};
  const std::string rest = path.substr(kHub.size());
  const std::string name = rest.substr(0, rest.find('/', rest.find('/') + 1));
  return name.substr(0, name.find('@'));
}

std::string first_file_of(const Plan& plan) { return plan.source.files.empty() ? "" : plan.source.files.front()->path; }

std::string name_of(const std::string& path) { return fs::path(path).filename().string(); }

// Returns the memory that usual contexts need; empty if that is not known.
std::vector<CardContext> contexts_of(const Job& job) {
  const auto model = shared_model(job);
  const auto added = huggingface::AddedMaps::read({});
  if (!model || !added) return {};
  const Metadata& metadata = model.value().metadata;
  const auto trained = trained_context(metadata);
  if (!trained) return {};
  std::vector<FitTensor> tensors;
  for (const Tensor& tensor : model.value().tensors)
    tensors.push_back({tensor.name, tensor.shape(), tensor.type, padded_bytes(tensor, *tensor.type, 0)});
  std::vector<CardContext> contexts;
  FitSettings settings;
  settings.cache_type = &type_named("F16");
  for (const std::uint64_t tokens : {std::uint64_t{8192}, std::uint64_t{32768}}) {
    settings.run.context = std::min(tokens, *trained);
    if (settings.run.context == 0) return {};
    const auto fitted = fit_of(tensors, metadata, settings, added.value());
    if (!fitted || !fitted.value().is_known) return {};
    const MemoryUse& use = fitted.value().all;
    if (contexts.empty() || settings.run.context > contexts.back().tokens)
      contexts.push_back({settings.run.context, use.cache + use.states + use.compute});
  }
  return contexts;
}

// Returns the card of a job without its files. `plan` is that of any of its outputs.
Result<Card> started_card(const CardOptions& options, const Plan& plan, const Job& job) {
  Card card;
  card.name = plan.source.name;
  card.version = GGUFMILL_VERSION;
  card.use = plan.source.use == PlannedSource::Use::kAdapter     ? CardUse::kAdapter
             : plan.source.use == PlannedSource::Use::kEmbedding ? CardUse::kEmbedding
                                                                 : CardUse::kText;
  card.repository = options.repository.empty() && job.sections.publish.upload
                        ? hub_name(job.sections.publish.upload->to)
                        : options.repository;
  const std::string source = first_file_of(plan), base = base_card_path(plan);
  if (is_file(base)) {
    BOOST_OUTCOME_TRY(const std::string text, read_text_file(base, kMaxBytes));
    Result<BaseCard> read = read_base_card(text, base);
    if (read)
      card.base = std::move(read).value();
    else  // the files can be published without it
      card.base.warnings.push_back(
          fmt::format("{}: {}; the card has none of it", read.error().where, read.error().what));
  }
  card.base_model = options.base_model;
  if (card.use == CardUse::kAdapter) {  // it is not a version of the repository that it is read from
    const std::vector<std::string> bases = base_models_of(card);
    if (bases.size() == 1) card.base_model = bases.front();
  } else if (card.base_model.empty()) {
    card.base_model = hub_name(source);
  }
  if (card.use != CardUse::kAdapter) card.contexts = contexts_of(job);
  if (card.name.empty()) card.name = fs::path(source).stem().string();
  if (is_file(job.file)) {
    BOOST_OUTCOME_TRY(const std::string text, read_text_file(job.file, kMaxBytes));
    card.job = without_folders(text);
  }
  return card;
}

// Returns the row of an output that exists.
CardFile card_file(const PlannedOutput& planned, const JobOutput& output, const Manifest& manifest) {
  CardFile file;
  for (const ManifestFile& each : manifest.files) {
    file.shards.push_back({each.name, each.sha256});
    file.bytes += each.bytes;
  }
  file.recipe = type_of(planned);
  file.part = part_name(output.part.value_or(ModelPart::kText));
  std::uint64_t bytes = 0, weights = 0;
  for (const PlannedTensor& tensor : planned.tensors) {
    bytes += tensor.bytes;
    weights += tensor.shape.elements();
    file.importance = file.importance || tensor.importance;
  }
  file.bits_per_weight = weights == 0 ? 0 : 8 * static_cast<double>(bytes) / static_cast<double>(weights);
  file.encoder = encoder_of(manifest);
  return file;
}

}  // namespace

Result<CardTemplate> card_template(const CardOptions& options, std::size_t outputs) {
  CardTemplate made;
  if (options.card_template.empty()) {
    made.name = built_in_cards().front().name;
    made.text = built_in_cards().front().text;
    return made;
  }
  made.name = options.card_template;
  BOOST_OUTCOME_TRY(made.text, read_text_file(options.card_template, kMaxBytes));
  Card example;
  example.files.resize(outputs, CardFile{.shards = {CardShard{"model.gguf", {}}}});
  BOOST_OUTCOME_TRY(render_card(example, made.text, made.name));
  return made;
}

std::vector<std::string> card_warnings(const CardOptions& options, const Plan& plan, const Job& job) {
  const Result<Card> card = started_card(options, plan, job);
  if (!card) return {};  // the step reports it
  std::vector<std::string> warnings = card.value().base.warnings;
  if (base_models_of(card.value()).empty())
    warnings.push_back(
        fmt::format("the card {} has no base_model, so the hub does not show what the files were made from: add its "
                    "name, card: {{base_model: ORG/NAME}}",
                    quoted_name(options.path)));
  return warnings;
}

std::string base_card_path(const Plan& plan) {
  const std::string source = first_file_of(plan);
  return source.substr(0, name_begin(source)) + "README.md";
}

Result<Card> card_of(const CardOptions& options, JobOutputs& outputs) {
  BOOST_OUTCOME_TRY(const Plan* const plan, outputs.plan_of(outputs.parts().front()));
  const Job& job = outputs.job();
  BOOST_OUTCOME_TRY(Card card, started_card(options, *plan, job));
  std::vector<std::string> paths;
  BOOST_OUTCOME_TRY(outputs.for_each_written([&](const JobOutput& output, const WrittenOutput& written) -> Status {
    card.files.push_back(card_file(*written.planned, output, written.manifest));
    paths.push_back(written.path);
    return ok();
  }));
  const std::vector<ImportanceComputation> computed = outputs.computations();
  if (!computed.empty())
    card.importance = CardImportance{name_of(computed.front().text), computed.front().chunks,
                                     name_of(computed.front().result_path())};
  if (!job.sections.publish.quality) return card;
  BOOST_OUTCOME_TRY(const QualityStep quality, QualityStep::make(*job.sections.publish.quality, outputs));
  card.measurement = CardMeasurement{name_of(job.sections.publish.quality->perplexity.text),
                                     job.sections.publish.quality->perplexity.chunks,
                                     job.sections.publish.quality->perplexity.context};
  for (std::size_t i = 0; i < paths.size(); ++i) {
    card.files[i].is_base = paths[i] == quality.base().path;
    if (const auto measured = quality.known_of(paths[i]))
      card.files[i].quality = CardQuality{measured->divergence, measured->divergence_99, measured->divergence_max,
                                          measured->same_top, measured->perplexity};
  }
  return card;
}

}  // namespace ggufmill
