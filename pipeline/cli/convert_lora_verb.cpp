// `ggufmill convert-lora`: accepts the arguments of convert_lora_to_gguf.py.

#include <cstdio>

#include "pipeline/cli/messages.h"
#include "pipeline/cli/running.h"
#include "pipeline/cli/verb.h"
#include "pipeline/llama_cpp/convert_options.h"

namespace ggufmill {
namespace {

namespace po = boost::program_options;

CommandSpec convert_lora_command() {
  CommandSpec spec;
  spec.usage = "ggufmill convert-lora [options] ADAPTER";
  spec.description =
      "Convert a LoRA adapter in the format of PEFT to GGUF, with the arguments of convert_lora_to_gguf.py and the "
      "same bytes as its output. ADAPTER is a folder with adapter_config.json; of the base model, only config.json "
      "is needed. Without --outfile, the output is written into ADAPTER, under the name that convert_lora_to_gguf.py "
      "uses. --emit-pipeline prints the equivalent pipeline file.";
  spec.examples =
      "  ggufmill convert-lora adapters/my-lora --base models/Llama-3-8B\n"
      "  ggufmill convert-lora adapters/my-lora --base hf://meta-llama/Llama-3.1-8B --outtype f16 --outfile out/";
  spec.positional = "adapter";
  spec.optional = true;
  add_arguments(spec.options, convert_lora_arguments());
  auto add = spec.options.add_options();
  add("base-model-id", po::value<std::string>(), "base model on the hub: --base hf://ID");
  add("dry-run", "print the name of the file without writing anything");
  add("verbose", "print what is done with each tensor");
  add("no-lazy", "no effect: an adapter is never read into memory entirely");
  add("trust-remote-code", "no effect: no code of a model is run");
  add("defaults", po::value<std::string>(),
      "no effect: keys missing in the base's config.json always get the defaults of their class");
  add("overwrite", "replace existing outputs");
  add("emit-pipeline", "print the equivalent pipeline file and exit");
  add_kernel_options(spec.options);
  add_run_options(spec.options);
  return spec;
}

Result<ConvertLoraOptions> read_lora_options(const po::variables_map& values) {
  ConvertLoraOptions options;
  options.adapter = values["adapter"].as<std::string>();
  read_arguments(values, convert_lora_arguments(), options);
  if (const auto id = text_of(values, "base-model-id")) {
    if (!options.base.empty())
      return usage_error("--base and --base-model-id cannot be used together", "give one of them");
    options.base = "hf://" + *id;
  }
  for (const char* const idle : {"no-lazy", "trust-remote-code", "defaults"})
    if (values.count(idle)) print_note(std::string("--") + idle + " has no effect");
  return options;
}

int convert_lora_verb(const Parsed& parsed) {
  name_options();
  if (!parsed.values.count("adapter"))
    return fail(usage_error("no adapter given", "usage: ggufmill convert-lora [options] ADAPTER; see `--help`"));
  return run_conversion(read_lora_options(parsed.values), parsed.values);
}

}  // namespace

const Verb kConvertLoraVerb{"convert-lora", OperationGroup::kConvert,
                            "Convert a LoRA adapter to GGUF, with convert_lora_to_gguf.py's arguments",
                            convert_lora_command, convert_lora_verb};

}  // namespace ggufmill
