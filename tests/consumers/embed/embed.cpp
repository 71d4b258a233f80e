// embed MODEL.gguf FOLDER: quantizes the model as a program that embeds libggufmill would, and shows the guarantees
// that such a program can rely on: progress reports, cancellation, errors for invalid requests, and no partial outputs.
#include <ggufmill.h>

#include <cstdio>
#include <filesystem>

using namespace ggufmill;

// Quantizes MODEL to `out` with `recipe`.
Result<RunReport> quantize(const Context& context, const std::string& model, const std::string& out,
                           const std::string& recipe, const RunOptions& options) {
  QuantizeStageOptions quantize;
  BOOST_OUTCOME_TRY(quantize.recipe, context.recipes().find(recipe));
  BOOST_OUTCOME_TRY(auto stage, make_quantize_stage(std::move(quantize), context.recipes()));
  BOOST_OUTCOME_TRY(auto sink, make_gguf_sink({.path = out}));
  Job job;
  job.source = make_gguf_source(model);
  job.outputs.push_back({std::move(sink), {std::move(stage)}});
  BOOST_OUTCOME_TRY(const Plan plan, context.plan(job));
  return context.run(plan, options);
}

int main(int, char** argv) {
  const std::string model = argv[1], folder = argv[2], out = folder + "/out.gguf";
  const auto context = Context::create();
  if (!context) return std::fputs(render(context.error()).c_str(), stderr), 1;
  if (context.value().kernels().modules().size() < 2) return 6;  // modules next to the library, plus the built-in one
  std::atomic<bool> stop{true};
  RunOptions options;
  options.stop = &stop;
  const auto stopped = quantize(context.value(), model, out, "Q4_K_M", options);
  if (stopped || stopped.error().code != ExitCode::kInterrupted) return 2;
  const auto refused = quantize(context.value(), model, out, "IQ1_S", {});  // IQ1_S needs importance
  if (refused || refused.error().code != ExitCode::kUsage) return 3;
  if (!std::filesystem::is_empty(folder)) return 4;
  std::uint64_t written = 0;
  options.progress = [&](const Progress& now) { written = now.bytes_written; };
  stop = false;
  const auto report = quantize(context.value(), model, out, "Q4_K_M", options);
  if (!report) return std::fputs(render(report.error()).c_str(), stderr), 1;
  return written <= report.value().bytes_written && std::filesystem::file_size(out) > 0 ? 0 : 5;
}
