// `ggufmill convert`: accepts the arguments of convert_hf_to_gguf.py.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>

#include "pipeline/cli/messages.h"
#include "pipeline/cli/running.h"
#include "pipeline/cli/verb.h"
#include "pipeline/core/text.h"
#include "stages/huggingface/huggingface_source.h"

namespace ggufmill {
namespace {

namespace po = boost::program_options;
using Strings = std::vector<std::string>;

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
    {"disable-mistral-community-chat-template", "the name of a template that llama.cpp supports is always written"},
    {"remote", "models on the hub are given by address",
     "run `ggufmill convert hf://{folder}`; weights are read from the server, and no copy is kept"},
};

void add_llama_cpp_options(po::options_description& options) {
  auto add = options.add_options();
  add("outfile", po::value<std::string>(), "file to write, or a folder; {ftype} in it is replaced by the type");
  add("outtype", po::value<std::string>()->default_value("auto"), "f32, f16, bf16, q8_0, tq1_0, tq2_0, or auto");
  add("vocab-only", "write the metadata and the vocabulary, but no tensors");
  add("model-name", po::value<std::string>(), "name of the model; overrides the name in the checkpoint");
  add("metadata", po::value<std::string>(), "JSON file with general.* keys that override those of the checkpoint");
  add("split-max-size", po::value<std::string>()->default_value("0"), "maximum bytes of tensors per file: 20G");
  add("split-max-tensors", po::value<std::uint64_t>()->default_value(0), "maximum number of tensors per file");
  add("no-tensor-first-split", "write the metadata into a first file without tensors");
  add("bigendian", "write for big-endian machines");
  add("mmproj", "write the projector with the encoders of images and sound instead of the text model");
  add("mtp", "write only the multi-token prediction head");
  add("no-mtp", "omit the multi-token prediction head");
  add("no-nextn", "same as --no-mtp");
  add("dspark", "write only the DSpark draft in the checkpoint; requires --target-model-dir");
  add("target-model-dir", po::value<std::string>(), "folder of the model for which the checkpoint is a draft");
  add("fuse-gate-up-exps", "fuse the gate and up tensors of each layer's experts into one");
  add("fp8-as-q8", "write FP8 tensors as Q8_0");
  add("sentence-transformers-dense-modules", "include the Dense modules of an embedding model");
  add("mistral-format", "read params.json and consolidated.safetensors, Mistral's own format");
  add("dry-run", "print the names of the files without writing anything");
  add("print-supported-models", "list the supported classes of config.json and exit");
  add("verbose", "print what is done with each tensor");
}

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
  add_llama_cpp_options(spec.options);
  auto add = spec.options.add_options();
  for (const OddOption& odd : kOddOptions) {
    const std::string text = std::string(odd.instead ? "not supported: " : "no effect: ") + odd.why;
    if (odd.has_value)
      add(odd.name, po::value<std::string>(), text.c_str());
    else
      add(odd.name, text.c_str());
  }
  add("defaults",
      po::value<std::string>()->default_value(
          huggingface::class_defaults_form().write(ConvertOptions().class_defaults)),
      "defaults for missing keys of config.json: transformers (those of its class for the model type) or none");
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
  options.outfile = text_of(values, "outfile").value_or("");
  options.outtype = values["outtype"].as<std::string>();
  options.model_name = text_of(values, "model-name");
  options.metadata = text_of(values, "metadata");
  BOOST_OUTCOME_TRY(options.split_max_size, parse_split_size(values["split-max-size"].as<std::string>()));
  options.split_max_tensors = values["split-max-tensors"].as<std::uint64_t>();
  options.no_tensor_first_split = values.count("no-tensor-first-split") > 0;
  options.bigendian = values.count("bigendian") > 0;
  options.vocab_only = values.count("vocab-only") > 0;
  options.mmproj = values.count("mmproj") > 0;
  options.mtp = values.count("mtp") > 0;
  options.no_mtp = values.count("no-mtp") + values.count("no-nextn") > 0;
  options.dspark = values.count("dspark") > 0;
  options.target_model_dir = text_of(values, "target-model-dir").value_or("");
  options.fuse_gate_up_exps = values.count("fuse-gate-up-exps") > 0;
  options.mistral_format = values.count("mistral-format") > 0;
  options.fp8_as_q8 = values.count("fp8-as-q8") > 0;
  options.sentence_transformers_dense_modules = values.count("sentence-transformers-dense-modules") > 0;
  BOOST_OUTCOME_TRY(options.class_defaults, parse_option("--defaults", huggingface::class_defaults_form(),
                                                         values["defaults"].as<std::string>()));
  return options;
}

int print_supported_models() {
  const auto classes = convertible_classes();
  if (!classes) return fail(classes.error());
  for (const std::string& name : classes.value()) std::puts(name.c_str());
  return 0;
}

int convert_verb(const Parsed& parsed) {
  if (parsed.values.count("print-supported-models")) return print_supported_models();
  if (!parsed.values.count("folder"))
    return fail(usage_error("no folder given", "usage: ggufmill convert [options] FOLDER; see `--help`"));
  return run_conversion(read_options(parsed.values), parsed.values);
}

}  // namespace

const Verb kConvertVerb{"convert", VerbGroup::kConvert,
                        "Convert a checkpoint to GGUF, with convert_hf_to_gguf.py's arguments", convert_command,
                        convert_verb};

}  // namespace ggufmill
