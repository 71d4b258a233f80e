// `convert_lora`: converts a LoRA adapter to GGUF, with the arguments of convert_lora_to_gguf.py.

#include <fmt/format.h>

#include "pipeline/api/operations/conversion.h"
#include "pipeline/api/operations/operations.h"
#include "pipeline/core/option_reference.h"

namespace ggufmill {
namespace {

struct LoraRequest : ConvertLoraOptions, ConversionRequest {
  std::string base_model_id{};
  bool trust_remote_code = false;  // an option of convert_lora_to_gguf.py that has no effect here
};

constexpr const char* kRemoteCode = "no code of a model is run";

Status check_lora(const LoraRequest& request) {
  if (request.base.empty() || request.base_model_id.empty()) return check_run(request);
  Error error = cannot_be_together("base", "base_model_id");
  error.help = "give one of them";
  return error;
}

Result<Answer<PipelineRun>> run_lora(const Context& context, const LoraRequest& request, const Call& call) {
  note_idle_options(request, call);
  note_idle(request.trust_remote_code, "trust_remote_code", kRemoteCode, call);
  ConvertLoraOptions options = request;
  if (!request.base_model_id.empty()) options.base = "hf://" + request.base_model_id;
  return run_conversion(context, request, pipeline_of(options), call);
}

std::vector<Option<LoraRequest>> lora_options() {
  using Lora = ConvertLoraOptions;
  using Request = LoraRequest;
  return {option("adapter", &Lora::adapter, text(), "folder with adapter_config.json").word("ADAPTER"),
          option("outtype", &Lora::outtype, text(), "f32, f16, bf16, q8_0, or auto (like the adapter)"),
          option("base", &Lora::base, text(), "folder or address of the base model's config.json"),
          option("base_model_id", &Request::base_model_id, text(), "base model on the hub: @base hf://ID")
              .only_on_command_line(),
          option("trust_remote_code", &Request::trust_remote_code, fmt::format("no effect: {}", kRemoteCode))
              .only_on_command_line()};
}

}  // namespace

OperationSpec convert_lora_operation() {
  return pipeline_operation(OperationOf<LoraRequest, PipelineRun>{
      .name = "convert_lora",
      .group = OperationGroup::kConvert,
      .summary = "Convert a LoRA adapter to GGUF, with convert_lora_to_gguf.py's arguments",
      .description =
          "Convert a LoRA adapter in the format of PEFT to GGUF, with the arguments of convert_lora_to_gguf.py and the "
          "same bytes as its output. @adapter is a folder with adapter_config.json; of the base model, only "
          "config.json is needed. Without @outfile, the output is written into @adapter, under the name that "
          "convert_lora_to_gguf.py uses. @emit_pipeline gives the equivalent pipeline file instead.",
      .examples =
          "  ggufmill convert-lora adapters/my-lora --base models/Llama-3-8B\n"
          "  ggufmill convert-lora adapters/my-lora --base hf://meta-llama/Llama-3.1-8B --outtype f16 --outfile out/",
      .options = lora_options() + conversion_output_options() + conversion_options(),
      .check = check_lora,
      .run = run_lora,
      .print = [](const PipelineRun& run, TextOutput& to) { print_run(run, false, to); }});
}

}  // namespace ggufmill
