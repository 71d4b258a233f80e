#include "stages/importance/computed_importance.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "pipeline/core/importance.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

constexpr const char* kUncomputed = "the importance matrix is not computed yet";

bool is_computed(const std::shared_ptr<const Stage>& stage) { return stage->as_computed_importance() != nullptr; }

// Returns the index of the output that is the model of a computation.
Result<std::size_t> model_of(const ImportanceComputation& computation, const Job& job) {
  std::vector<std::string> targets;
  for (const JobOutput& output : job.outputs)
    if (output.sink) targets.push_back(output.sink->target());
  const std::string wanted = computation.model.empty() && !targets.empty() ? targets.front() : computation.model;
  const auto found = std::ranges::find(targets, wanted);
  if (found == targets.end())
    return error_at(computation.origin, fmt::format("no output of this job is {}", quoted_name(wanted)),
                    fmt::format("`model` is the path of an output{}",
                                did_you_mean(wanted, targets).empty()
                                    ? ""
                                    : ", for example " + quoted_name(did_you_mean(wanted, targets))));
  if (!found->ends_with(".gguf"))
    return error_at(computation.origin, fmt::format("{} is not a GGUF file", quoted_name(*found)),
                    "`model` is the path of an output that the program can read");
  return static_cast<std::size_t>(found - targets.begin());
}

// Gives the computed importance in the stages of output `index` its model, or removes it if the output does not need
// it. Returns the number of those that stay.
Result<std::size_t> place(Job& job, std::size_t index) {
  JobOutput& output = job.outputs[index];
  const bool uses = std::ranges::any_of(output.stages, [](const auto& stage) { return stage->uses_importance(); });
  std::size_t used = 0;
  StageList placed;
  for (const auto& stage : output.stages) {
    const ComputedImportanceStage* computed = stage->as_computed_importance();
    if (!computed) {
      placed.push_back(stage);
      continue;
    }
    ImportanceComputation computation = computed->computation();
    BOOST_OUTCOME_TRY(const std::size_t model, model_of(computation, job));
    computation.model = job.outputs[model].sink->target();
    if (index == model || !uses || output.part != job.outputs[model].part) continue;
    placed.push_back(computed->with_computation(std::move(computation)));
    ++used;
  }
  output.stages = std::move(placed);
  return used;
}

}  // namespace

std::string ImportanceComputation::result_path() const {
  if (!file.empty()) return file;
  constexpr std::string_view kEnding = ".gguf";
  const std::string stem = model.ends_with(kEnding) ? model.substr(0, model.size() - kEnding.size()) : model;
  return stem + ".imatrix.gguf";
}

bool ImportanceComputation::is_same(const ImportanceComputation& other) const {
  return program == other.program && text == other.text && chunks == other.chunks && context == other.context &&
         model == other.model && file == other.file && options == other.options;
}

Error uncomputed(const ImportanceComputation& computation) {
  return error_at(computation.origin, fmt::format("{} from {}", kUncomputed, quoted_name(computation.text)),
                  "`ggufmill run` computes it first");
}

bool wants_importance(const Error& error) { return error.what.starts_with(kUncomputed); }

void assume_importance(Model& model) {
  std::map<std::uint64_t, std::shared_ptr<const std::vector<float>>> ones;  // by number of columns
  for (Tensor& tensor : model.tensors) {
    const Shape& shape = tensor.shape();
    if (shape.rank < 2 || !layer_of(tensor.name)) continue;
    auto importance = std::make_shared<Importance>();
    importance->name = tensor.name;
    importance->columns = shape.columns();
    importance->matrices = shape.dims[2];
    auto& weights = ones[importance->columns];
    if (!weights) weights = std::make_shared<const std::vector<float>>(importance->columns, 1.0F);
    importance->substitute = weights;
    importance->substituted.resize(importance->matrices);
    std::iota(importance->substituted.begin(), importance->substituted.end(), 0);
    importance->fingerprint = "assumed";
    tensor.importance = std::move(importance);
  }
}

const ImportanceComputation* computation_of(const JobOutput& output) {
  for (const auto& stage : output.stages)
    if (is_computed(stage)) return &stage->as_computed_importance()->computation();
  return nullptr;
}

Status place_computed_importance(Job& job) {
  const auto first = std::ranges::find_if(job.stages, is_computed);
  const StageList moved(first, job.stages.end());
  job.stages.erase(first, job.stages.end());
  const ImportanceComputation* any = nullptr;
  StageList before;  // keeps `any` valid
  std::size_t used = 0;
  for (std::size_t i = 0; i < job.outputs.size(); ++i) {
    StageList& stages = job.outputs[i].stages;
    stages.insert(stages.begin(), moved.begin(), moved.end());
    before.insert(before.end(), stages.begin(), stages.end());
    BOOST_OUTCOME_TRY(const std::size_t here, place(job, i));
    used += here;
  }
  for (const auto& stage : before)
    if (is_computed(stage)) any = &stage->as_computed_importance()->computation();
  if (!any) return ok();
  if (used == 0)
    return error_at(any->origin, "no output needs this importance",
                    "an output needs it if it has `quantize`, is of the same part as `model`, and is not `model` "
                    "itself: add one, or remove `compute`");
  for (const JobOutput& output : job.outputs)
    for (const auto& stage : output.stages)
      if (is_computed(stage)) {
        const ImportanceComputation& computation = stage->as_computed_importance()->computation();
        BOOST_OUTCOME_TRY(const std::size_t model, model_of(computation, job));
        if (std::ranges::any_of(job.outputs[model].stages, is_computed))
          return error_at(computation.origin,
                          fmt::format("{} itself needs an importance that is computed", quoted_name(computation.model)),
                          "let `model` be an output without it, such as one in BF16");
      }
  return ok();
}

Form<ImportanceComputation> computation_form() {
  using Options = ImportanceComputation;
  return map_of<Options>({
                             field("program", &Options::program, path(), "The program llama-imatrix of llama.cpp.")
                                 .example("llama.cpp/build/bin/llama-imatrix"),
                             field("text", &Options::text, path(), "Text that the model reads.")
                                 .required()
                                 .example("calibration.txt"),
                             field("chunks", &Options::chunks, "Number of chunks of the text. Defaults to all.")
                                 .at_least(1)
                                 .shown_default("")
                                 .example("200"),
                             field("context", &Options::context, "Tokens per chunk.").at_least(8).example("512"),
                             field("model", &Options::model, path(),
                                   "Path of the output that the program reads, which must not depend on the importance "
                                   "itself. Defaults "
                                   "to the first output.")
                                 .example("out/model-BF16.gguf"),
                             field("file", &Options::file, path(),
                                   "Path of the result. Defaults to MODEL.imatrix.gguf for the model MODEL.gguf.")
                                 .example("out/imatrix.gguf"),
                             field("options", &Options::options, list_of(text()), "Further arguments of the program.")
                                 .for_program()
                                 .example("['-ngl', '99']"),
                         })
      .at(&Options::origin)
      .doc(
          "Compute the importance with llama-imatrix from an output of this job. The other outputs with `quantize` of "
          "the same part of the checkpoint are written when it is known.")
      .example("{text: calibration.txt, chunks: 200}");
}

}  // namespace ggufmill
