// `convert_lora`: converts a LoRA adapter to GGUF, with the arguments of convert_lora_to_gguf.py.

#include <fmt/format.h>

#include "pipeline/api/operations/operations.h"
#include "pipeline/api/operations/option_names.h"
#include "pipeline/api/operations/run_pipeline.h"
#include "pipeline/core/option_reference.h"
#include "pipeline/llama_cpp/arguments.h"
#include "pipeline/llama_cpp/convert_options.h"

namespace ggufmill {
namespace {

struct LoraRequest : ConvertLoraOptions, RunRequest {
  bool verbose = false;
  std::string base_model_id{};
  // Options of convert_lora_to_gguf.py that have no effect here.
  bool no_lazy = false, trust_remote_code = false;
  std::string defaults{};
};

Status check_lora(const LoraRequest& request) {
  if (request.base.empty() || request.base_model_id.empty()) return check_run(request);
  Error error = cannot_be_together("base", "base_model_id");
  error.help = "give one of them";
  return error;
}

Result<Answer<PipelineRun>> run_lora(const Context& context, const LoraRequest& request, const Call& call) {
  const std::pair<const char*, bool> idle[] = {{"no_lazy", request.no_lazy},
                                               {"trust_remote_code", request.trust_remote_code},
                                               {"defaults", !request.defaults.empty()}};
  for (const auto& [name, is_given] : idle)
    if (is_given) call.note({fmt::format("{} has no effect", option_reference(name))});
  ConvertLoraOptions options = request;
  if (!request.base_model_id.empty()) options.base = "hf://" + request.base_model_id;
  const auto pipeline = pipeline_of(options);
  if (!pipeline) return with_help_for_options(pipeline.error());
  PipelineHooks hooks;
  if (request.verbose) hooks.planned = note_tensors(call);
  return run_pipeline(context, request, pipeline.value(), call, hooks);
}

std::vector<Option<LoraRequest>> lora_options() {
  using Lora = ConvertLoraOptions;
  using Request = LoraRequest;
  return {
      option("adapter", &Lora::adapter, text(), "folder with adapter_config.json").word("ADAPTER"),
      option("outfile", &Lora::outfile, path(), "file to write, or a folder; {ftype} in it is replaced by the type"),
      option("outtype", &Lora::outtype, text(), "f32, f16, bf16, q8_0, or auto (like the adapter)"),
      option("base", &Lora::base, text(), "folder or address of the base model's config.json"),
      option("bigendian", &Lora::bigendian, "write for big-endian machines"),
      option("architectures", &Lora::architectures, list_of(path()), kArchitecturesHelp),
      option("base_model_id", &Request::base_model_id, text(), "base model on the hub: @base hf://ID")
          .only_on_command_line(),
      option("verbose", &Request::verbose, "print what is done with each tensor").only_on_command_line(),
      option("no_lazy", &Request::no_lazy, "no effect: an adapter is never read into memory entirely")
          .only_on_command_line(),
      option("trust_remote_code", &Request::trust_remote_code, "no effect: no code of a model is run")
          .only_on_command_line(),
      option("defaults", &Request::defaults, text(),
             "no effect: keys missing in the base's config.json always get the defaults of their class")
          .only_on_command_line()};
}

}  // namespace

OperationSpec convert_lora_operation() {
  return operation(OperationOf<LoraRequest, PipelineRun>{
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
      .options_first = true,
      .options = lora_options() + run_options(),
      .result = pipeline_result(),
      .progress = "",
      .check = check_lora,
      .run = run_lora,
      .print = [](const PipelineRun& run, TextOutput& to) { print_run(run, false, to); }});
}

}  // namespace ggufmill
