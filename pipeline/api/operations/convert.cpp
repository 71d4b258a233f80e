// `convert`: converts a checkpoint to GGUF, with the arguments of convert_hf_to_gguf.py.

#include <fmt/format.h>

#include "pipeline/api/operations/operations.h"
#include "pipeline/api/operations/option_names.h"
#include "pipeline/api/operations/run_pipeline.h"
#include "pipeline/core/checkpoint.h"
#include "pipeline/core/option_reference.h"
#include "pipeline/llama_cpp/arguments.h"
#include "pipeline/llama_cpp/convert_options.h"

namespace ggufmill {
namespace {

struct ConvertRequest : ConvertOptions, RunRequest {
  bool print_supported_models = false, verbose = false;
  // Options of convert_hf_to_gguf.py that have no effect here or are not supported.
  bool no_lazy = false, use_temp_file = false, no_community_template = false, remote = false;
  std::string defaults{};
};

Status check_convert(const ConvertRequest& request) {
  if (request.remote)
    return usage_error(
        fmt::format("{} is not supported: models on the hub are given by address", option_reference("remote")),
        fmt::format("run `ggufmill convert hf://{}`; weights are read from the server, and no copy is kept",
                    request.folder));
  return check_run(request);
}

void note_idle_options(const ConvertRequest& request, const Call& call) {
  const auto note = [&](bool is_given, const char* name, const char* why) {
    if (is_given) call.note({fmt::format("{} has no effect: {}", option_reference(name), why)});
  };
  note(request.no_lazy, "no_lazy", "a checkpoint is never read into memory entirely");
  note(request.use_temp_file, "use_temp_file", "memory use is bounded without it");
  note(!request.defaults.empty(), "defaults", "keys missing in config.json always get the defaults of their class");
  note(request.no_community_template, "disable_mistral_community_chat_template",
       "the name of a template that llama.cpp supports is always written");
}

Result<Answer<PipelineRun>> run_convert(const Context& context, const ConvertRequest& request, const Call& call) {
  if (request.print_supported_models) {
    Answer<PipelineRun> answer{};
    BOOST_OUTCOME_TRY(answer.value.classes, convertible_classes(request.architectures));
    return answer;
  }
  note_idle_options(request, call);
  const auto pipeline = pipeline_of(request);
  if (!pipeline) return with_help_for_options(pipeline.error());
  PipelineHooks hooks;
  if (request.verbose) hooks.planned = note_tensors(call);
  return run_pipeline(context, request, pipeline.value(), call, hooks);
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
      option("outfile", &Convert::outfile, path(), "file to write, or a folder; {ftype} in it is replaced by the type"),
      option("outtype", &Convert::outtype, text(), "f32, f16, bf16, q8_0, tq1_0, tq2_0, or auto"),
      option("vocab_only", &Convert::vocab_only, "write the metadata and the vocabulary, but no tensors"),
      option("model_name", &Convert::model_name, text(), "name of the model; overrides the name in the checkpoint"),
      option("metadata", &Convert::metadata, path(),
             "JSON file with general.* keys that override those of the checkpoint"),
      option("split_max_size", &Convert::split_max_size, text(), "maximum bytes of tensors per file: 20G"),
      option("split_max_tensors", &Convert::split_max_tensors, "maximum number of tensors per file"),
      option("no_tensor_first_split", &Convert::no_tensor_first_split,
             "write the metadata into a first file without tensors"),
      option("bigendian", &Convert::bigendian, "write for big-endian machines"),
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
      option("architectures", &Convert::architectures, list_of(path()), kArchitecturesHelp),
      option("mistral_format", &Convert::mistral_format,
             "read params.json and consolidated.safetensors, Mistral's own format"),
      option("print_supported_models", &Request::print_supported_models,
             "list the supported classes of config.json and exit")
          .only_on_command_line()
          .replaces_words(),
      option("verbose", &Request::verbose, "print what is done with each tensor").only_on_command_line(),
      option("no_lazy", &Request::no_lazy, "no effect: a checkpoint is never read into memory entirely")
          .only_on_command_line(),
      option("use_temp_file", &Request::use_temp_file, "no effect: memory use is bounded without it")
          .only_on_command_line(),
      option("defaults", &Request::defaults, text(),
             "no effect: keys missing in config.json always get the defaults of their class")
          .only_on_command_line(),
      option("disable_mistral_community_chat_template", &Request::no_community_template,
             "no effect: the name of a template that llama.cpp supports is always written")
          .only_on_command_line(),
      option("remote", &Request::remote, "not supported: models on the hub are given by address")
          .only_on_command_line()};
}

}  // namespace

OperationSpec convert_operation() {
  return operation(OperationOf<ConvertRequest, PipelineRun>{
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
      .options_first = true,
      .options = convert_options() + run_options(),
      .result = convert_result(),
      .progress = "",
      .check = check_convert,
      .run = run_convert,
      .print = [](const PipelineRun& run, TextOutput& to) { print_run(run, false, to); }});
}

}  // namespace ggufmill
