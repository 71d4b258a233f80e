// `ggufmill convert`: accepts the arguments of convert_hf_to_gguf.py.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>

#include "pipeline/cli/messages.h"
#include "pipeline/cli/running.h"
#include "pipeline/cli/verb.h"
#include "pipeline/core/text.h"
#include "pipeline/llama_cpp/convert_options.h"

namespace ggufmill {
namespace {

namespace po = boost::program_options;

// An option of convert_hf_to_gguf.py that has no effect here or is not supported.
struct OddOption {
  const char* name;
  const char* why;
  const char* instead = nullptr;  // alternative to suggest when the option is rejected; null: accepted
  bool has_value = false;
};
constexpr OddOption kOddOptions[] = {
    {"no-lazy", "a checkpoint is never read into memory entirely"},
    {"use-temp-file", "memory use is bounded without it"},
    {"defaults", "keys missing in config.json always get the defaults of their class", nullptr, true},
    {"disable-mistral-community-chat-template", "the name of a template that llama.cpp supports is always written"},
    {"remote", "models on the hub are given by address",
     "run `ggufmill convert hf://{folder}`; weights are read from the server, and no copy is kept"},
};

CommandSpec convert_command() {
  CommandSpec spec;
  spec.usage = "ggufmill convert [options] FOLDER";
  spec.description =
      "Convert a checkpoint to GGUF, with the arguments of convert_hf_to_gguf.py and the same bytes as its output. "
      "FOLDER is a checkpoint; without --outfile, the output is written into it, under the name that "
      "convert_hf_to_gguf.py uses. --emit-pipeline prints the equivalent pipeline file.";
  spec.examples =
      "  ggufmill convert models/Llama-3-8B\n"
      "  ggufmill convert models/Llama-3-8B --outtype q8_0 --outfile out/ --split-max-size 20G\n"
      "  ggufmill convert --emit-pipeline models/Llama-3-8B > job.yaml";
  spec.positional = "folder";
  spec.optional = true;
  add_arguments(spec.options, convert_arguments());
  auto add = spec.options.add_options();
  add("no-nextn", "same as --no-mtp");
  add("dry-run", "print the names of the files without writing anything");
  add("print-supported-models", "list the supported classes of config.json and exit");
  add("verbose", "print what is done with each tensor");
  for (const OddOption& odd : kOddOptions) {
    const std::string text = std::string(odd.instead ? "not supported: " : "no effect: ") + odd.why;
    if (odd.has_value)
      add(odd.name, po::value<std::string>(), text.c_str());
    else
      add(odd.name, text.c_str());
  }
  add("overwrite", "replace existing outputs");
  add("emit-pipeline", "print the equivalent pipeline file and exit");
  add_kernel_options(spec.options);
  add_run_options(spec.options);
  return spec;
}

Status check_odd_options(const po::variables_map& values) {
  for (const OddOption& odd : kOddOptions) {
    if (!values.count(odd.name)) continue;
    const std::string what =
        fmt::format("--{} {}: {}", odd.name, odd.instead ? "is not supported" : "has no effect", odd.why);
    if (odd.instead) {
      std::string instead = odd.instead;
      if (const std::size_t at = instead.find("{folder}"); at != std::string::npos)
        instead.replace(at, 8, values["folder"].as<std::string>());
      return usage_error(what, instead);
    }
    print_note(what);
  }
  return ok();
}

Result<ConvertOptions> read_options(const po::variables_map& values) {
  BOOST_OUTCOME_TRY(check_odd_options(values));
  ConvertOptions options;
  options.folder = values["folder"].as<std::string>();
  read_arguments(values, convert_arguments(), options);
  options.no_mtp = options.no_mtp || values.count("no-nextn") > 0;
  return options;
}

int print_supported_models(const po::variables_map& values) {
  const auto classes = convertible_classes(value_or<Strings>(values, "architectures", {}));
  if (!classes) return fail(classes.error());
  for (const std::string& name : classes.value()) std::puts(name.c_str());
  return 0;
}

int convert_verb(const Parsed& parsed) {
  name_options();
  if (parsed.values.count("print-supported-models")) return print_supported_models(parsed.values);
  if (!parsed.values.count("folder"))
    return fail(usage_error("no folder given", "usage: ggufmill convert [options] FOLDER; see `--help`"));
  return run_conversion(read_options(parsed.values), parsed.values);
}

}  // namespace

const Verb kConvertVerb{"convert", OperationGroup::kConvert,
                        "Convert a checkpoint to GGUF, with convert_hf_to_gguf.py's arguments", convert_command,
                        convert_verb};

}  // namespace ggufmill
