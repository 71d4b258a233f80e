// `quantize`: quantizes a model, with the arguments of llama-quantize.

#include <fmt/format.h>

#include "pipeline/api/operations/context_options.h"
#include "pipeline/api/operations/operations.h"
#include "pipeline/api/operations/option_names.h"
#include "pipeline/api/operations/run_pipeline.h"
#include "pipeline/api/table.h"
#include "pipeline/core/checkpoint.h"
#include "pipeline/core/text.h"
#include "pipeline/llama_cpp/quantize_options.h"

namespace ggufmill {
namespace {

// A rule for the types of tensors, or a file of them.
struct TensorTypes {
  std::string rule{}, file{};
};

struct QuantizeRequest : QuantizeOptions, QuantizeWords, RunRequest {
  std::vector<TensorTypes> given_types{};
};

// Fills in the tensor types, in the order given, because the first match wins. Returns the files that were read.
Result<std::vector<std::string>> read_tensor_types(const QuantizeRequest& request, QuantizeOptions& options) {
  std::vector<std::string> files;
  for (const TensorTypes& each : request.given_types) {
    if (each.file.empty()) {
      options.tensor_types.push_back(each.rule);
      continue;
    }
    files.push_back(each.file);
    BOOST_OUTCOME_TRY(const auto more, read_tensor_type_file(each.file));
    options.tensor_types.insert(options.tensor_types.end(), more.begin(), more.end());
  }
  return files;
}

void note_sizes(const PlannedOutput& output, const Call& call) {
  std::uint64_t before = 0, after = 0, weights = 0;
  for (const PlannedTensor& tensor : output.tensors) {
    before += tensor.source_bytes;
    after += tensor.bytes;
    weights += tensor.shape.elements();
  }
  const auto bits = [&](std::uint64_t bytes) {
    return 8.0 * static_cast<double>(bytes) / static_cast<double>(weights);
  };
  call.note({fmt::format("model size = {} ({:.2f} bits per weight)", human_bytes(before), bits(before))});
  call.note({fmt::format("quant size = {} ({:.2f} bits per weight)", human_bytes(after), bits(after))});
}

void note_outputs(const Plan& plan, const Call& call) {
  for (const PlannedOutput& output : plan.outputs) {
    if (plan.outputs.size() > 1) call.note({output.files.front().path});
    for (const Message& message : tensor_messages(output)) call.note(message);
    note_sizes(output, call);
  }
}

Result<Answer<PipelineRun>> quantize(const Context& context, const QuantizeRequest& request, const Call& call) {
  QuantizeOptions options = request;
  std::vector<std::string> warnings;
  PipelineHooks hooks;
  BOOST_OUTCOME_TRY(read_words(request, options, warnings));
  BOOST_OUTCOME_TRY(hooks.inputs, read_tensor_types(request, options));
  BOOST_OUTCOME_TRY(const std::string pipeline, pipeline_of(options, warnings, context.recipes()));
  call.warn_all(warnings);
  hooks.planned = [&](const Plan& plan) -> Status {
    if (call.shows_notes) note_outputs(plan, call);
    return ok();
  };
  return run_pipeline(context, request, pipeline, call, hooks);
}

Result<Answer<PipelineRun>> run_quantize(const Context& context, const QuantizeRequest& request, const Call& call) {
  auto answer = quantize(context, request, call);
  if (!answer) return with_help_for_options(answer.error());
  return answer;
}

Result<std::vector<std::string>> arranged(const std::vector<std::string>& words) {
  BOOST_OUTCOME_TRY(QuantizeWords each, arrange_words(words));
  return std::vector<std::string>{std::move(each.input), std::move(each.type), std::move(each.output),
                                  std::move(each.threads)};
}

Form<std::vector<TensorTypes>> tensor_types_form() {
  auto rule = converted<TensorTypes>(text(), [](std::string written) { return TensorTypes{std::move(written), {}}; });
  auto file = map_of<TensorTypes>(
      {field("file", &TensorTypes::file, path(), "File of PATTERN=TYPE, separated by white space.").required()});
  return list_of(either<TensorTypes>(std::move(rule), std::move(file)));
}

std::vector<Option<QuantizeRequest>> quantize_options() {
  using Quantize = QuantizeOptions;
  using Words = QuantizeWords;
  return {
      option("input", &Words::input, path(), "GGUF file, checkpoint folder, or safetensors file of a diffusion model")
          .word("INPUT"),
      option("type", &Words::type, text(), "name, alias, or number of a recipe, path of a recipe file, or several: A,B")
          .word("TYPE"),
      option("output", &Words::output, path(), "file to write, or a folder").optional_word("OUTPUT"),
      option("threads", &Words::threads, number_as_text(), "number of threads; default: as many as the machine has")
          .optional_word("THREADS"),
      option("allow_requantize", &Quantize::allow_requantize,
             "requantize tensors that are already quantized; loses quality"),
      option("leave_output_tensor", &Quantize::leave_output_tensor, "leave output.weight unchanged"),
      option("pure", &Quantize::pure, "use one type for all tensors instead of a mixture"),
      option("imatrix", &Quantize::imatrix, path(), "importance matrix, GGUF or legacy .dat"),
      option("covariance", &Quantize::covariance, path(),
             "covariance file of ggufmill-calibrate, with which levels are chosen; it is also the importance matrix"),
      option("hide_imatrix", &Quantize::hide_imatrix, "record that there was an importance matrix, but not which"),
      option("include_weights", &Quantize::include_weights, list_of(text()),
             "use importance only for tensors whose names contain this text"),
      option("exclude_weights", &Quantize::exclude_weights, list_of(text()),
             "use no importance for tensors whose names contain this text"),
      option("output_tensor_type", &Quantize::output_tensor_type, text(), "type of output.weight"),
      option("token_embedding_type", &Quantize::token_embedding_type, text(), "type of the token embedding"),
      option("tensor_type", &QuantizeRequest::given_types, tensor_types_form(),
             "types of the tensors whose names match: \"PATTERN=TYPE\", or {\"file\": PATH} for a file of them; the "
             "first match wins")
          .as_flags(
              {{"tensor-type", "", "PATTERN=TYPE: type of the tensors whose names match; the first match wins", true},
               {"tensor-type-file", "file", "file with values of --tensor-type", true}}),
      option("custom_q", &Quantize::custom_types, list_of(text()),
             "REGEX=TYPE,REGEX=TYPE...: the same as a list, as in ik_llama.cpp; a type that does not fit is replaced"),
      option("repack", &Quantize::repack,
             "change no values, but interleave rows for ik_llama.cpp (types _R4 and _R8); @type is ignored"),
      option("repack_pattern", &Quantize::repack_patterns, list_of(text()),
             "REGEX,REGEX...: with @repack, only tensors whose names match one of these"),
      option("encoder", &Quantize::encoder, text(),
             "reference, search, covariance, or '{search: {effort: 3}}': see `encoder` of a stage"),
      option("prune_layers", &Quantize::prune_layers, text(), "layers to remove: 6,7"),
      option("architectures", &Quantize::architectures, list_of(path()), kArchitecturesHelp),
      option("allow_missing", &Quantize::allow_missing, kAllowMissingHelp),
      option("keep_split", &Quantize::keep_split, "write the same shards as the input"),
      option("override_kv", &Quantize::override_kv, list_of(text()),
             "KEY=TYPE:VALUE: set metadata; TYPE is int, float, bool, str, or a metadata type"),
      option("max_buffer_size", &Quantize::max_buffer_size, text(),
             "accepted, but has no effect: the memory of every job is bounded (limits.memory)")};
}

}  // namespace

OperationSpec quantize_operation() {
  return operation(OperationOf<QuantizeRequest, PipelineRun>{
      .name = "quantize",
      .group = OperationGroup::kConvert,
      .summary = "Quantize a model, with llama-quantize's arguments",
      .description =
          "Quantize a model, with the arguments of llama-quantize and the same bytes as its output. @input is a GGUF "
          "file, or a checkpoint folder or the safetensors file of a diffusion model, which is converted and quantized "
          "in one pass. @type is a recipe (`ggufmill recipe list`), its number, or the path of a recipe file "
          "(./mine.yaml); the input is read only once for several types. Without @output, the output of a GGUF file is "
          "ggml-model-TYPE.gguf next to it; with several types, for a checkpoint or a diffusion model, and if @output "
          "is a folder (a new one ends with /), each output is MODEL-TYPE.gguf. @emit_pipeline gives the equivalent "
          "pipeline file.",
      .for_programs = "In Python, quantize_model() quantizes a model, and quantize() an array.",
      .examples = "  ggufmill quantize model-BF16.gguf Q4_K_M\n"
                  "  ggufmill quantize models/Llama-3-8B out/ Q4_K_M,Q6_K\n"
                  "  ggufmill quantize flux1-dev.safetensors flux1-dev-Q8_0.gguf Q8_0\n"
                  "  ggufmill quantize --imatrix imatrix.gguf model-BF16.gguf model-IQ3_M.gguf IQ3_M 8\n"
                  "  ggufmill quantize --emit-pipeline model-BF16.gguf Q4_K_M > job.yaml",
      .usage_words = "INPUT [OUTPUT] TYPE[,TYPE...] [THREADS]",
      .options_first = true,
      .words_are_numbers = true,
      .in_python = {.name = "quantize_model"},
      .arrange_words = arranged,
      .options = quantize_options() + run_options(),
      .result = pipeline_result(),
      .progress = "",
      .check = [](const QuantizeRequest& request) { return check_run(request); },
      .run = run_quantize,
      .print = [](const PipelineRun& run, TextOutput& to) { to.out = run.pipeline.value_or(""); }});
}

}  // namespace ggufmill
