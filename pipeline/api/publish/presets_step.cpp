#include "pipeline/api/publish/presets_step.h"

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/api/describe.h"
#include "pipeline/api/fit.h"
#include "pipeline/core/text.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/source_path.h"
#include "stages/gguf/gguf.h"

namespace ggufmill {
namespace {

constexpr std::uint64_t kUsualContext = 8192;  // tokens; programs that do not ask for the model's own take 4096

// Returns a path as a preset at `from` has it: "./model.gguf".
std::string relative_path(const std::string& path, const std::string& from) {
  const fs::path folder = fs::absolute(from).parent_path();
  const std::string relative = fs::absolute(path).lexically_proximate(folder).generic_string();
  return relative.starts_with("..") || fs::path(relative).is_absolute() ? relative : "./" + relative;
}

std::string stem_of(const std::string& path) { return fs::path(path).stem().string(); }

// The size that most people choose.
bool is_usual_size(const PlannedOutput& output) {
  constexpr double kMaxBits = 5;  // per weight
  return totals_of(output).bits_per_weight() <= kMaxBits;
}

}  // namespace

std::vector<std::string> paths_of(const PresetOptions& options) {
  std::vector<std::string> paths;
  for (const std::string* path : {&options.ollama, &options.llama_server, &options.lm_studio})
    if (!path->empty()) paths.push_back(*path);
  return paths;
}

Result<std::vector<PresetsStep::Output>> PresetsStep::outputs() {
  std::vector<Output> all;
  for (const JobPart& part : outputs_.parts()) {
    BOOST_OUTCOME_TRY(const Plan* const plan, outputs_.plan_of(part));
    if (plan->source.use == PlannedSource::Use::kAdapter) continue;
    for (const PlannedOutput& planned : plan->outputs) {
      if (!planned_metadata(planned.files)) continue;
      Output& output = all.emplace_back();
      output.path = planned.files.front().path;
      output.recipe = planned.recipe;
      for (const OutputFile& file : planned.files) output.bytes += file.bytes;
      output.files = planned.files.size();
      output.part = planned.part.value_or(ModelPart::kText);
      output.is_embedding = plan->source.use == PlannedSource::Use::kEmbedding;
      output.planned = &planned;
    }
  }
  return all;
}

const PresetsStep::Output* PresetsStep::chosen(const std::vector<Output>& all) const {
  const auto is_better = [](const Output& each, const Output& than) {
    const bool is_small = is_usual_size(*each.planned), other_is_small = is_usual_size(*than.planned);
    if (is_small != other_is_small) return is_small;
    return is_small ? each.bytes > than.bytes : each.bytes < than.bytes;
  };
  const Output* best = nullptr;
  for (const Output& each : all) {
    if (each.part != ModelPart::kText) continue;
    if (!options_.model.empty()) {
      if (each.path == options_.model) return &each;
      continue;
    }
    if (each.files != 1 && !options_.ollama.empty()) continue;  // Ollama reads no shards
    if (!best || is_better(each, *best)) best = &each;
  }
  return best;
}

Result<std::vector<PresetsStep::Text>> PresetsStep::texts(const std::atomic<bool>* stop) {
  warnings_.clear();
  BOOST_OUTCOME_TRY(const std::vector<Output> all, outputs());
  const Output* const model = chosen(all);
  if (!model) return usage_error("no output is a text model in one GGUF file", "remove `presets` from the job");
  const auto projector = std::ranges::find(all, ModelPart::kProjector, &Output::part);
  const auto projector_at = [&](const std::string& from) {
    return projector == all.end() ? std::string() : relative_path(projector->path, from);
  };
  const Metadata metadata = *planned_metadata(model->planned->files);
  PresetFacts facts;
  facts.sampling = sampling_of(metadata);
  facts.context = options_.context;
  if (!facts.context) facts.context = std::min(trained_context(metadata).value_or(kUsualContext), kUsualContext);
  std::string name = outputs_.parts().empty() ? "" : outputs_.plan_of(outputs_.parts().front()).value()->source.name;
  if (name.empty()) name = stem_of(model->path);
  std::vector<Text> texts;
  if (!options_.ollama.empty()) {
    BOOST_OUTCOME_TRY(facts.chat, choose_template(model->path, metadata, stop));
    if (!facts.chat.found && metadata.find("tokenizer.chat_template"))
      warnings_.push_back(fmt::format("{}: it has no TEMPLATE: {}", options_.ollama, facts.chat.note));
    const PresetModel one{name, relative_path(model->path, options_.ollama), projector_at(options_.ollama),
                          model->is_embedding};
    texts.push_back({options_.ollama, modelfile(one, facts)});
  }
  if (!options_.llama_server.empty()) {
    std::vector<PresetModel> models;
    for (const Output& each : all)
      if (each.part == ModelPart::kText)
        models.push_back({name, relative_path(each.path, options_.llama_server), projector_at(options_.llama_server),
                          each.is_embedding});
    texts.push_back({options_.llama_server, llama_server_presets(models, options_.context)});
  }
  if (!options_.lm_studio.empty()) texts.push_back({options_.lm_studio, lm_studio_preset(name, facts)});
  return texts;
}

bool PresetsStep::is_done(const std::atomic<bool>* stop) {
  const auto wanted = texts(stop);
  return wanted &&
         std::ranges::all_of(wanted.value(), [](const Text& each) { return is_text_at(each.path, each.text); });
}

Result<std::vector<std::string>> PresetsStep::run(const StepFiles& files, bool overwrite,
                                                  const std::atomic<bool>* stop) {
  BOOST_OUTCOME_TRY(const std::vector<Text> wanted, texts(stop));
  for (const Text& each : wanted) {
    BOOST_OUTCOME_TRY(files.write(each.path, each.text, overwrite));
  }
  return warnings_;
}

void PresetsStep::check(Diagnostics& errors) {
  const auto refuse = [&](std::string what, const char* help) {
    errors.add(error_at(options_.origin, std::move(what), help));
  };
  if (paths_of(options_).empty())
    return refuse("no file is asked for", "add one: presets: {ollama: out/Modelfile}; also llama_server and lm_studio");
  const auto all = outputs();
  if (!all) return;  // reported with the outputs
  for (const Output& each : all.value())
    if (is_address(each.path))
      return refuse(fmt::format("{} is not a local file, which presets name", quoted_name(each.path)),
                    "write it to a local file, or remove `presets`");
  const Output* const model = chosen(all.value());
  if (!model)
    return options_.model.empty()
               ? refuse("no output is a text model in one GGUF file", "add one, or remove `presets`")
               : refuse(fmt::format("no output of this job is {}, or it is no text model", quoted_name(options_.model)),
                        "`model` is the path of an output with a text model in a GGUF file");
  if (!options_.ollama.empty() && model->files != 1)
    refuse(fmt::format("{} has {} shards, which Ollama does not read", quoted_name(options_.model), model->files),
           "name an output that is one file, or remove `ollama`");
}

}  // namespace ggufmill
