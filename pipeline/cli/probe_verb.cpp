// `ggufmill probe`: measures how much each tensor matters, based on the model's output.

#include <fmt/format.h>

#include "pipeline/api/probe.h"
#include "pipeline/cli/measuring.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/planning.h"
#include "pipeline/cli/signals.h"
#include "pipeline/cli/verb.h"
#include "pipeline/cluster/command.h"

namespace ggufmill {
namespace {

namespace po = boost::program_options;

CommandSpec probe_command() {
  CommandSpec spec;
  spec.usage = "ggufmill probe FILE --perplexity PROGRAM --text FILE [options]";
  spec.description =
      "For the targets of a pipeline file: makes, tensor by tensor, the model with that tensor alone of a coarse type, "
      "and has llama.cpp's llama-perplexity say how far its answers are from the model's own. The sensitivities are "
      "what objective `probe` takes. One model file is there at a time; ended early, the same command goes on.";
  spec.examples =
      "  ggufmill probe job.yaml --perplexity llama.cpp/build/bin/llama-perplexity --text wiki.txt --chunks 60\n"
      "  # then, in job.yaml: objective: {name: probe, sensitivities: job.sensitivities.json}";
  spec.positional = "file";
  add_job_options(spec.options);
  auto add = spec.options.add_options();
  add("perplexity", po::value<std::string>(), "the program llama-perplexity");
  add("text", po::value<std::string>(), "a file of text to answer");
  add("type", po::value<std::string>()->default_value("Q2_K"), "the coarse type");
  add("chunks", po::value<unsigned>()->default_value(0), "how many chunks of the text; 0: all");
  add("context", po::value<unsigned>()->default_value(256), "tokens of a chunk");
  add("threads", po::value<std::string>(), "as limits.threads: a number, or auto");
  add("output,o", po::value<std::string>(), "where to write; FILE.sensitivities.json in place of FILE.yaml");
  add("quiet,q", "no progress and no summary");
  return spec;
}

// Runs a program and returns its output. If it fails, the error contains the last 400 characters of its output, which
// usually state the reason.
Result<std::string> run_program(const std::vector<std::string>& words) {
  BOOST_OUTCOME_TRY(const CommandResult result, run_command(words));
  std::string printed = result.out + result.err;
  if (result.exit_code == 0) return printed;
  const std::string end = printed.size() > 400 ? printed.substr(printed.size() - 400) : printed;
  return Error{ExitCode::kIo, words.front(), fmt::format("ended with exit code {}", result.exit_code), end, ""};
}

int probe_verb(const Parsed& parsed) {
  const po::variables_map& values = parsed.values;
  for (const char* name : {"perplexity", "text"})
    if (!values.count(name))
      return fail(usage_error(fmt::format("--{} is missing", name), "usage: " + probe_command().usage));
  auto loaded = load_from(values);
  if (!loaded) return fail(loaded.error());
  if (loaded.value().batch.is_matrix)
    return fail(usage_error("a batch is not probed as one", "probe each of its sources by a file of its own"));
  Job& job = loaded.value().batch.jobs.front().job;
  if (const Status read = read_job_options(values, job); !read) return fail(read.error());
  ProbeOptions options;
  options.perplexity = values["perplexity"].as<std::string>();
  options.text = values["text"].as<std::string>();
  options.type = values["type"].as<std::string>();
  options.chunks = values["chunks"].as<unsigned>();
  options.context = values["context"].as<unsigned>();
  options.threads = job.limits.threads;
  options.output = value_or<std::string>(values, "output", path_beside(job, ".sensitivities.json"));
  options.run_program = run_program;
  options.stop = catch_signals();
  const bool quiet = values.count("quiet") > 0;
  if (!quiet)
    options.progress = [](const std::string& tensor, std::size_t done, std::size_t count) {
      say_note(fmt::format("[{}/{}] {}", done + 1, count, tensor));
    };
  const auto probes = probe(loaded.value().context, job, options);
  if (!probes) {
    const int code = fail(probes.error());
    return signal_exit_code().value_or(code);
  }
  if (!quiet)
    say_note(fmt::format("wrote {}  how much each of {} tensors matters", options.output, probes.value().size()));
  return 0;
}

}  // namespace

const Verb kProbeVerb{"probe", "measure how much each tensor matters, by llama-perplexity", probe_command, probe_verb};

}  // namespace ggufmill
