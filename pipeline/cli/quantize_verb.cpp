// `ggufmill quantize`: accepts the arguments of llama-quantize.

#include <fmt/format.h>

#include <cstdio>

#include "pipeline/api/reports.h"
#include "pipeline/api/table.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/running.h"
#include "pipeline/cli/verb.h"
#include "pipeline/llama_cpp/quantize_options.h"

namespace ggufmill {
namespace {

namespace po = boost::program_options;

CommandSpec quantize_command() {
  CommandSpec spec;
  spec.usage = "ggufmill quantize [options] INPUT [OUTPUT] TYPE[,TYPE...] [THREADS]";
  spec.description =
      "Quantize a model, with the arguments of llama-quantize and the same bytes as its output. INPUT is a GGUF file, "
      "or a checkpoint folder or the safetensors file of a diffusion model, which is converted and quantized in one "
      "pass. TYPE is a recipe (`ggufmill recipe list`), its number, or the path of a recipe file (./mine.yaml); the "
      "input is read only once for several types. Without OUTPUT, the output of a GGUF file is ggml-model-TYPE.gguf "
      "next to it; with several types, for a checkpoint or a diffusion model, and if OUTPUT is a folder, each output "
      "is MODEL-TYPE.gguf. --emit-pipeline prints the equivalent pipeline file.";
  spec.examples =
      "  ggufmill quantize model-BF16.gguf Q4_K_M\n"
      "  ggufmill quantize models/Llama-3-8B out/ Q4_K_M,Q6_K\n"
      "  ggufmill quantize flux1-dev.safetensors flux1-dev-Q8_0.gguf Q8_0\n"
      "  ggufmill quantize --imatrix imatrix.gguf model-BF16.gguf model-IQ3_M.gguf IQ3_M 8\n"
      "  ggufmill quantize --emit-pipeline model-BF16.gguf Q4_K_M > job.yaml";
  spec.positional = "words";
  spec.many = true;
  spec.numbers = true;
  add_arguments(spec.options, quantize_arguments());
  auto add = spec.options.add_options();
  add("dry-run", "show what would be done without writing anything");
  add("overwrite", "replace existing outputs");
  add("emit-pipeline", "print the equivalent pipeline file and exit");
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
  BOOST_OUTCOME_TRY(read_positional(values["words"].as<Strings>(), options, warnings));
  read_arguments(values, quantize_arguments(), options);
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
  name_options();
  if (const Status usable = check_dry_run(parsed.values); !usable) return fail(usable.error());
  Strings warnings;
  const auto options = read_options(parsed, warnings);
  if (!options) return fail(options.error());
  auto context = open_context(parsed.values);
  if (!context) return fail(context.error());
  const auto pipeline = pipeline_of(options.value(), warnings, context.value().recipes());
  if (!pipeline) return fail(pipeline.error());
  for (const std::string& warning : warnings) print_warning(warning);
  if (parsed.values.count("emit-pipeline")) {
    std::fputs(pipeline.value().c_str(), stdout);
    return 0;
  }
  const auto planned =
      plan_arguments(std::move(context).value(), pipeline.value(), options.value().tensor_type_files, parsed.values);
  if (!planned) return fail(planned.error());
  const std::vector<PlannedOutput>& outputs = planned.value().plan.outputs;
  for (const PlannedOutput& output : outputs) {
    if (parsed.values.count("quiet")) break;
    if (outputs.size() > 1) print_note(output.files.front().path);
    print_tensors(output);
    print_sizes(output);
  }
  if (parsed.values.count("dry-run")) return dry_run(planned.value());
  return execute(planned.value(), parsed.values, parsed.values.count("overwrite") > 0);
}

}  // namespace

const Verb kQuantizeVerb{"quantize", OperationGroup::kConvert, "Quantize a model, with llama-quantize's arguments",
                         quantize_command, quantize_verb};

}  // namespace ggufmill
