// `ggufmill quantize`: accepts the arguments of llama-quantize.

#include <fmt/format.h>

#include <cstdio>

#include "pipeline/api/quantize_options.h"
#include "pipeline/api/reports.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/running.h"
#include "pipeline/cli/table.h"
#include "pipeline/cli/verb.h"

namespace ggufmill {
namespace {

namespace po = boost::program_options;
using Strings = std::vector<std::string>;

void add_reference_options(po::options_description& options) {
  auto add = options.add_options();
  add("allow-requantize", "requantize tensors that are already quantized; loses quality");
  add("leave-output-tensor", "leave output.weight unchanged");
  add("pure", "use one type for all tensors instead of a mixture");
  add("imatrix", po::value<std::string>(), "importance matrix, GGUF or legacy .dat");
  add("include-weights", po::value<Strings>()->composing(),
      "use importance only for tensors whose names contain this text");
  add("exclude-weights", po::value<Strings>()->composing(),
      "use no importance for tensors whose names contain this text");
  add("output-tensor-type", po::value<std::string>(), "type of output.weight");
  add("token-embedding-type", po::value<std::string>(), "type of the token embedding");
  add("tensor-type", po::value<Strings>()->composing(),
      "PATTERN=TYPE: type of the tensors whose names match; the first match wins");
  add("tensor-type-file", po::value<Strings>()->composing(), "file with values of --tensor-type");
  add("encoder", po::value<std::string>(), "reference, search, or '{search: {effort: 3}}': see `encoder` of a stage");
  add("prune-layers", po::value<std::string>(), "layers to remove: 6,7");
  add("keep-split", "write the same shards as the input");
  add("override-kv", po::value<Strings>()->composing(),
      "KEY=TYPE:VALUE: set metadata; TYPE is int, float, bool, str, or a metadata type");
  add("dry-run", "show what would be done without writing anything");
}

CommandSpec quantize_command() {
  CommandSpec spec;
  spec.usage = "ggufmill quantize [options] INPUT [OUTPUT] TYPE[,TYPE...] [THREADS]";
  spec.description =
      "Quantize a model, with the arguments of llama-quantize and the same bytes as its output. INPUT is a GGUF file, "
      "or a checkpoint folder or the safetensors file of a diffusion model, which is converted and quantized in one "
      "pass. TYPE is a recipe (`ggufmill recipe list`), its number, or the path of a recipe file (./mine.yaml); the "
      "input is read only once for several types. Without OUTPUT, the output of a GGUF file is ggml-model-TYPE.gguf "
      "next to it; with several types, for a checkpoint or a diffusion model, and if OUTPUT is a folder, each output "
      "is "
      "MODEL-TYPE.gguf. --emit-pipeline prints the equivalent pipeline file.";
  spec.examples =
      "  ggufmill quantize model-BF16.gguf Q4_K_M\n"
      "  ggufmill quantize models/Llama-3-8B out/ Q4_K_M,Q6_K\n"
      "  ggufmill quantize flux1-dev.safetensors flux1-dev-Q8_0.gguf Q8_0\n"
      "  ggufmill quantize --imatrix imatrix.gguf model-BF16.gguf model-IQ3_M.gguf IQ3_M 8\n"
      "  ggufmill quantize --emit-pipeline model-BF16.gguf Q4_K_M > job.yaml";
  spec.positional = "words";
  spec.many = true;
  spec.numbers = true;
  add_reference_options(spec.options);
  spec.options.add_options()("overwrite", "replace existing outputs")("emit-pipeline",
                                                                      "print the equivalent pipeline file and exit");
  add_kernel_options(spec.options);
  add_run_options(spec.options);
  return spec;
}

// Returns the tensor types from the command line and from files, in the order given, because the first match wins.
Result<Strings> tensor_types(const Parsed& parsed) {
  Strings words;
  for (const auto& [name, value] : parsed.given) {
    if (name == "tensor-type") words.push_back(value);
    if (name != "tensor-type-file") continue;
    BOOST_OUTCOME_TRY(const auto more, read_tensor_type_file(value));
    words.insert(words.end(), more.begin(), more.end());
  }
  return words;
}

Result<QuantizeOptions> read_options(const Parsed& parsed, std::vector<std::string>& warnings) {
  const po::variables_map& values = parsed.values;
  QuantizeOptions options;
  BOOST_OUTCOME_TRY(read_words(values["words"].as<Strings>(), options, warnings));
  options.allow_requantize = values.count("allow-requantize") > 0;
  options.leave_output_tensor = values.count("leave-output-tensor") > 0;
  options.pure = values.count("pure") > 0;
  options.keep_split = values.count("keep-split") > 0;
  options.dry_run = values.count("dry-run") > 0;
  options.output_tensor_type = text_of(values, "output-tensor-type");
  options.token_embedding_type = text_of(values, "token-embedding-type");
  options.imatrix = text_of(values, "imatrix").value_or("");
  options.encoder = text_of(values, "encoder").value_or("");
  options.prune_layers = text_of(values, "prune-layers").value_or("");
  options.include_weights = value_or<Strings>(values, "include-weights", {});
  options.exclude_weights = value_or<Strings>(values, "exclude-weights", {});
  options.override_kv = value_or<Strings>(values, "override-kv", {});
  BOOST_OUTCOME_TRY(options.tensor_types, tensor_types(parsed));
  return options;
}

void print_sizes(const PlannedOutput& output) {
  std::uint64_t before = 0, after = 0, weights = 0;
  for (const PlannedTensor& tensor : output.tensors) {
    before += tensor.source_bytes;
    after += tensor.bytes;
    weights += tensor.shape.elements();
  }
  const auto bits = [&](std::uint64_t bytes) {
    return 8.0 * static_cast<double>(bytes) / static_cast<double>(weights);
  };
  print_note(fmt::format("model size = {} ({:.2f} bits per weight)", human_bytes(before), bits(before)));
  print_note(fmt::format("quant size = {} ({:.2f} bits per weight)", human_bytes(after), bits(after)));
}

// Prints problems that would stop a run as warnings, not errors.
int dry_run(const Planned& planned) {
  for (const PlannedOutput& output : planned.plan.outputs) {
    for (const Error& problem : output.problems)
      print_warning(problem.where.empty() && !problem.detail.empty() ? problem.what + ": " + problem.detail
                                                                     : problem.what);
    if (const auto fallbacks = describe_fallbacks(output); !fallbacks.empty()) print_warning(fallbacks);
  }
  return 0;
}

int quantize_verb(const Parsed& parsed) {
  if (const Status usable = check_dry_run(parsed.values); !usable) return fail(usable.error());
  Strings warnings;
  const auto options = read_options(parsed, warnings);
  if (!options) return fail(options.error());
  auto context = open_context(parsed.values);
  if (!context) return fail(context.error());
  const auto pipeline = context.value().quantize_pipeline(options.value(), warnings);
  if (!pipeline) return fail(pipeline.error());
  for (const std::string& warning : warnings) print_warning(warning);
  if (parsed.values.count("emit-pipeline")) {
    std::fputs(pipeline.value().c_str(), stdout);
    return 0;
  }
  const auto planned = plan_arguments(std::move(context).value(), pipeline.value(),
                                      value_or<Strings>(parsed.values, "tensor-type-file", {}), parsed.values);
  if (!planned) return fail(planned.error());
  const std::vector<PlannedOutput>& outputs = planned.value().plan.outputs;
  for (const PlannedOutput& output : outputs) {
    if (parsed.values.count("quiet")) break;
    if (outputs.size() > 1) print_note(output.files.front().path);
    print_tensors(output);
    print_sizes(output);
  }
  if (options.value().dry_run) return dry_run(planned.value());
  return execute(planned.value(), parsed.values, parsed.values.count("overwrite") > 0);
}

}  // namespace

const Verb kQuantizeVerb{"quantize", VerbGroup::kConvert, "Quantize a model, with llama-quantize's arguments",
                         quantize_command, quantize_verb};

}  // namespace ggufmill
