// `convert`: converts a checkpoint to GGUF, with the arguments of convert_hf_to_gguf.py.

#include <fmt/format.h>

#include "pipeline/api/operations/conversion.h"
#include "pipeline/api/operations/operations.h"
#include "pipeline/core/checkpoint.h"
#include "pipeline/core/option_reference.h"

namespace ggufmill {
namespace {

struct ConvertRequest : ConvertOptions, ConversionRequest {
  bool print_supported_models = false;
  // Options of convert_hf_to_gguf.py that have no effect here or are not supported.
  bool use_temp_file = false, no_community_template = false, remote = false;
};

constexpr const char *kTempFile = "memory use is bounded without it",
                     *kTemplate = "the name of a template that llama.cpp supports is always written";

Status check_convert(const ConvertRequest& request) {
  if (request.remote)
    return usage_error(
        fmt::format("{} is not supported: models on the hub are given by address", option_reference("remote")),
        fmt::format("run `ggufmill convert hf://{}`; weights are read from the server, and no copy is kept",
                    request.folder));
  return check_run(request);
}

Result<Answer<PipelineRun>> run_convert(const Context& context, const ConvertRequest& request, const Call& call) {
  if (request.print_supported_models) {
    Answer<PipelineRun> answer{};
    BOOST_OUTCOME_TRY(answer.value.classes, convertible_classes(request.architectures));
    return answer;
  }
  note_idle_options(request, call);
  note_idle(request.use_temp_file, "use_temp_file", kTempFile, call);
  note_idle(request.no_community_template, "disable_mistral_community_chat_template", kTemplate, call);
  return run_conversion(context, request, pipeline_of(request), call);
}

ResultForm<PipelineRun> convert_result() {
  ResultForm<PipelineRun> form = pipeline_result();
  form.members.push_back(result<PipelineRun>(
      "classes",
      [](const PipelineRun& run) {
        return run.classes ? std::optional(boost::json::value_from(*run.classes)) : std::nullopt;
      },
      "the supported classes of config.json"));
  form.members.back().command_line_only = true;
  return form;
}

std::vector<Option<ConvertRequest>> convert_options() {
  using Convert = ConvertOptions;
  using Request = ConvertRequest;
  return {
      option("folder", &Convert::folder, text(), "checkpoint: a folder, or the address of one").word("FOLDER"),
      option("outtype", &Convert::outtype, text(), "f32, f16, bf16, q8_0, tq1_0, tq2_0, or auto"),
      option("vocab_only", &Convert::vocab_only, "write the metadata and the vocabulary, but no tensors"),
      option("model_name", &Convert::model_name, text(), "name of the model; overrides the name in the checkpoint"),
      option("metadata", &Convert::metadata, path(),
             "JSON file with general.* keys that override those of the checkpoint"),
      option("split_max_size", &Convert::split_max_size, text(), "maximum bytes of tensors per file: 20G"),
      option("split_max_tensors", &Convert::split_max_tensors, "maximum number of tensors per file"),
      option("no_tensor_first_split", &Convert::no_tensor_first_split,
             "write the metadata into a first file without tensors"),
      option("mmproj", &Convert::mmproj,
             "write the projector with the encoders of images and sound instead of the text model"),
      option("mtp", &Convert::mtp, "write only the multi-token prediction head"),
      option("no_mtp", &Convert::no_mtp, "omit the multi-token prediction head")
          .as_flags(
              {{"no-mtp", "true", "omit the multi-token prediction head"}, {"no-nextn", "true", "same as @no_mtp"}}),
      option("dspark", &Convert::dspark, "write only the DSpark draft in the checkpoint; requires @target_model_dir"),
      option("target_model_dir", &Convert::target_model_dir, path(),
             "folder of the model for which the checkpoint is a draft"),
      option("fuse_gate_up_exps", &Convert::fuse_gate_up_exps,
             "fuse the gate and up tensors of each layer's experts into one"),
      option("fuse_qkv", &Convert::fuse_qkv, "fuse the query, key, and value tensors of each layer into one"),
      option("fp8_as_q8", &Convert::fp8_as_q8, "write FP8 tensors as Q8_0"),
      option("allow_missing", &Convert::allow_missing, kAllowMissingHelp),
      option("sentence_transformers_dense_modules", &Convert::sentence_transformers_dense_modules,
             "include the Dense modules of an embedding model"),
      option("mistral_format", &Convert::mistral_format,
             "read params.json and consolidated.safetensors, Mistral's own format"),
      option("print_supported_models", &Request::print_supported_models,
             "list the supported classes of config.json and exit")
          .only_on_command_line()
          .replaces_words(),
      option("use_temp_file", &Request::use_temp_file, fmt::format("no effect: {}", kTempFile)).only_on_command_line(),
      option("disable_mistral_community_chat_template", &Request::no_community_template,
             fmt::format("no effect: {}", kTemplate))
          .only_on_command_line(),
      option("remote", &Request::remote, "not supported: models on the hub are given by address")
          .only_on_command_line()};
}

}  // namespace

OperationSpec convert_operation() {
  return pipeline_operation(OperationOf<ConvertRequest, PipelineRun>{
      .name = "convert",
      .group = OperationGroup::kConvert,
      .summary = "Convert a checkpoint to GGUF, with convert_hf_to_gguf.py's arguments",
      .description =
          "Convert a checkpoint to GGUF, with the arguments of convert_hf_to_gguf.py and the same bytes as its output. "
          "@folder is a checkpoint; without @outfile, the output is written into it, under the name that "
          "convert_hf_to_gguf.py uses. @emit_pipeline gives the equivalent pipeline file instead.",
      .examples = "  ggufmill convert models/Llama-3-8B\n"
                  "  ggufmill convert models/Llama-3-8B --outtype q8_0 --outfile out/ --split-max-size 20G\n"
                  "  ggufmill convert --emit-pipeline models/Llama-3-8B > job.yaml",
      .options = convert_options() + conversion_output_options() + conversion_options(),
      .result = convert_result(),
      .check = check_convert,
      .run = run_convert,
      .print = [](const PipelineRun& run, TextOutput& to) { print_run(run, false, to); }});
}

}  // namespace ggufmill
