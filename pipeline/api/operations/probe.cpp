// `probe`: measures how much each tensor matters, based on the model's output.

#include "pipeline/api/probe.h"

#include <fmt/format.h>

#include "pipeline/api/measurement_file.h"
#include "pipeline/api/operations/jobs.h"
#include "pipeline/api/operations/operations.h"
#include "pipeline/core/option_reference.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

struct ProbeRequest : JobRequest, ProbeOptions {};

struct Probed {
  std::string output{};
  std::uint64_t tensors = 0;
};

Result<Answer<Probed>> run_probe(const Context& context, const ProbeRequest& request, const Call& call) {
  for (const auto& [name, value] : {std::pair("perplexity", &request.perplexity), {"text", &request.text}})
    if (value->empty())
      return usage_error(
          fmt::format("{} is missing", option_reference(name)),
          fmt::format("give {} and {}", option_reference("perplexity", "PROGRAM"), option_reference("text", "FILE")));
  BOOST_OUTCOME_TRY(const Job job,
                    single_job(context, request, call, "probing", "probe each source with its own pipeline file"));
  ProbeOptions options = request;
  options.threads = job.limits.threads;
  if (options.output.empty()) options.output = path_beside(job, ".sensitivities.json");
  options.stop = call.stop();
  options.progress = [&](const std::string& tensor, std::size_t done, std::size_t count) {
    call.note({fmt::format("[{}/{}] {}", done + 1, count, tensor)});
  };
  BOOST_OUTCOME_TRY(const Probes probes, probe(context, job, options));
  return Answer<Probed>{{options.output, probes.size()}};
}

}  // namespace

OperationSpec probe_operation() {
  using Options = std::vector<Option<ProbeRequest>>;
  return operation(OperationOf<ProbeRequest, Probed>{
      .name = "probe",
      .group = OperationGroup::kChoose,
      .summary = "Measure how much each tensor matters, with llama-perplexity",
      .description =
          "For the targets of a pipeline file: make, tensor by tensor, a copy of the model in which only that tensor "
          "has a coarse type, and measure with llama.cpp's llama-perplexity how far its output is from that of the "
          "original model. The resulting sensitivities are the input of the objective `probe`. Only one such copy "
          "exists at a time; after an interruption, the same command resumes.",
      .examples =
          "  ggufmill probe job.yaml --perplexity llama.cpp/build/bin/llama-perplexity --text wiki.txt --chunks 60\n"
          "  # then, in job.yaml: objective: {name: probe, sensitivities: job.sensitivities.json}",
      .options = Options() + pipeline_file_options() +
                 Options{option("perplexity", &ProbeOptions::perplexity, path(),
                                "path of the llama-perplexity program; required"),
                         option("text", &ProbeOptions::text, path(), "text file to evaluate; required"),
                         option("type", &ProbeOptions::type, text(), "coarse type"),
                         option("chunks", &ProbeOptions::chunks, "number of chunks of the text to evaluate; 0: all"),
                         option("context", &ProbeOptions::context, "tokens per chunk"), threads_option(),
                         option("output", &ProbeOptions::output, path(),
                                "file to write; default: FILE.sensitivities.json for FILE.yaml")
                             .short_flag('o')},
      .result = {{result("output", &Probed::output, "the file that was written"),
                  result("tensors", &Probed::tensors, "number of tensors in it")}},
      .context = ContextUse::kCheckpoints,
      .progress = "",
      .run = run_probe,
      .print = [](const Probed& probed, TextOutput& to) {
        to.notes.push_back(
            {fmt::format("wrote {}  sensitivities of {}", probed.output, counted(probed.tensors, "tensor"))});
      }});
}

}  // namespace ggufmill
