// `ggufmill probe`: measures how much each tensor matters, based on the model's output.

#include <fmt/format.h>

#include "pipeline/api/probe.h"
#include "pipeline/cli/measuring.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/planning.h"
#include "pipeline/cli/signals.h"
#include "pipeline/cli/verb.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

namespace po = boost::program_options;

CommandSpec probe_command() {
  CommandSpec spec;
  spec.usage = "ggufmill probe FILE --perplexity PROGRAM --text FILE [options]";
  spec.description =
      "For the targets of a pipeline file: make, tensor by tensor, a copy of the model in which only that tensor has a "
      "coarse type, and measure with llama.cpp's llama-perplexity how far its output is from that of the original "
      "model. The resulting sensitivities are the input of the objective `probe`. Only one such copy exists at a "
      "time; if interrupted, the same command resumes.";
  spec.examples =
      "  ggufmill probe job.yaml --perplexity llama.cpp/build/bin/llama-perplexity --text wiki.txt --chunks 60\n"
      "  # then, in job.yaml: objective: {name: probe, sensitivities: job.sensitivities.json}";
  spec.positional = "file";
  add_job_options(spec.options);
  auto add = spec.options.add_options();
  add("perplexity", po::value<std::string>(), "path of the llama-perplexity program");
  add("text", po::value<std::string>(), "text file to evaluate");
  add("type", po::value<std::string>()->default_value("Q2_K"), "coarse type");
  add("chunks", po::value<unsigned>()->default_value(0), "number of chunks of the text to evaluate; 0: all");
  add("context", po::value<unsigned>()->default_value(256), "tokens per chunk");
  add("threads", po::value<std::string>(), "number of threads, or auto; overrides limits.threads");
  add("output,o", po::value<std::string>(), "file to write; default: FILE.sensitivities.json for FILE.yaml");
  add("quiet,q", "print no progress and no summary");
  return spec;
}

int probe_verb(const Parsed& parsed) {
  const po::variables_map& values = parsed.values;
  for (const char* name : {"perplexity", "text"})
    if (!values.count(name))
      return fail(usage_error(fmt::format("--{} is missing", name), "usage: " + probe_command().usage));
  auto loaded = load_from(values);
  if (!loaded) return fail(loaded.error());
  if (loaded.value().batch.is_matrix)
    return fail(usage_error("probing is not supported for a batch", "probe each source with its own pipeline file"));
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
  options.stop = catch_signals();
  const bool quiet = values.count("quiet") > 0;
  if (!quiet)
    options.progress = [](const std::string& tensor, std::size_t done, std::size_t count) {
      print_note(fmt::format("[{}/{}] {}", done + 1, count, tensor));
    };
  const auto probes = probe(loaded.value().context, job, options);
  if (!probes) {
    const int code = fail(probes.error());
    return signal_exit_code().value_or(code);
  }
  if (!quiet)
    print_note(fmt::format("wrote {}  sensitivities of {}", options.output, counted(probes.value().size(), "tensor")));
  return 0;
}

}  // namespace

const Verb kProbeVerb{"probe", OperationGroup::kChoose, "Measure how much each tensor matters, with llama-perplexity",
                      probe_command, probe_verb};

}  // namespace ggufmill
