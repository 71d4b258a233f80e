// `part`: runs one part of a cluster job.

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>

#include "pipeline/cluster/operations/cluster_operations.h"
#include "pipeline/core/option_reference.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

struct RunPartRequest {
  std::string plan{}, part_env{}, isa{};
  std::optional<std::string> part{};
  std::optional<unsigned> threads{};
};

struct PartDone : PartOutcome {
  std::size_t part = 0;
};

Result<std::size_t> part_number(std::string_view text) {
  std::size_t part = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), part);
  if (read.ec == std::errc() && read.ptr == text.data() + text.size()) return part;
  return usage_error(fmt::format("{} is not a valid part number", quoted_name(text)), "parts are numbered from 0");
}

Result<std::size_t> which_part(const RunPartRequest& request) {
  const std::string part_env = option_reference("part_env"), give_part = "give " + option_reference("part", "K");
  if (request.part.has_value() != request.part_env.empty())
    return usage_error(
        fmt::format("expected one of {} and {}", option_reference("part"), part_env),
        fmt::format("give either {} or {}", option_reference("part", "K"), option_reference("part_env", "NAME")));
  if (request.part) return part_number(*request.part);
  const char* value = std::getenv(request.part_env.c_str());
  if (!value) return usage_error(fmt::format("the environment variable {} is not set", request.part_env), give_part);
  const auto part = part_number(value);
  if (part) return part;
  // Whatever the variable holds instead may be secret.
  return usage_error(fmt::format("the environment variable {} does not contain the number of a part", request.part_env),
                     "name the variable in which the engine counts, or " + give_part);
}

Result<Answer<PartDone>> run_part_operation(const Context& context, const RunPartRequest& request, const Call& call) {
  BOOST_OUTCOME_TRY(const std::size_t part, which_part(request));
  BOOST_OUTCOME_TRY(const std::string folder, folder_of_plan(request.plan));
  BOOST_OUTCOME_TRY(const OpenedArray opened, enter_array(folder, context, call, request.isa));
  PartOptions options;
  options.stop = call.stop();
  std::function<void(std::uint64_t, std::uint64_t)> progress;
  if (call.step_progress)
    progress = [&](std::uint64_t done, std::uint64_t total) {
      call.step_progress(fmt::format("part {}", part), done, total);
    };
  BOOST_OUTCOME_TRY(PartOutcome outcome, run_part(opened, part, request.threads, options, progress));
  call.warn_all(outcome.run.warnings);
  return Answer<PartDone>{{std::move(outcome), part}};
}

void print_part(const PartDone& done, TextOutput& to) {
  if (done.was_done)
    to.notes.push_back({fmt::format("part {} was already done", done.part)});
  else
    to.notes.push_back({fmt::format("part {}: {} of work in {:.2f} s, {} of them by an earlier attempt", done.part,
                                    counted(done.units, "unit"), done.run.seconds, done.units_kept)});
}

template <class Get>
ResultMember part_result(std::string_view name, Get get, std::string_view doc) {
  return result<PartDone>(
      name, [get](const PartDone& done) { return std::optional(boost::json::value_from(get(done))); }, doc);
}

}  // namespace

OperationSpec part_operation() {
  using Request = RunPartRequest;
  return operation(OperationOf<RunPartRequest, PartDone>{
      .name = "part",
      .group = OperationGroup::kCluster,
      .summary = "Run one part of a cluster job",
      .description =
          "Run part K of the cluster job in DIR, which `ggufmill submit` created; engines start the parts of a job "
          "with this command. Parts are numbered from 0. A part that is already done exits immediately; an interrupted "
          "one resumes. Threads and memory are those that Slurm allocates, or else those of the pipeline file.",
      .for_command_line = "Exit code 75 means that trying again may help.",
      .examples = "  ggufmill part --plan llama.job/plan.json --part 3\n"
                  "  seq 0 31 | parallel -S node1,node2 ggufmill part --plan $PWD/llama.job/plan.json --part {}",
      .usage_words = "--plan DIR/plan.json (--part K | --part-env NAME)",
      .options = {option("plan", &Request::plan, path(), "plan of the job, or its folder; required"),
                  option("part", &Request::part, number_as_text(), "number of the part"),
                  option("part_env", &Request::part_env, text(),
                         "environment variable with the number of the part: SLURM_ARRAY_TASK_ID"),
                  option("threads", &Request::threads, threads_form(),
                         "number of threads, or auto; overrides limits.threads")
                      .or_zero(),
                  option("isa", &Request::isa, text(), "use only kernels for this ISA")},
      .result = {{part_result(
                      "was_done", [](const PartDone& it) { return it.was_done; },
                      "true if another attempt had finished it"),
                  part_result(
                      "units", [](const PartDone& it) { return it.units; }, "number of units of work"),
                  part_result(
                      "units_kept", [](const PartDone& it) { return it.units_kept; }, "those of earlier attempts"),
                  part_result(
                      "seconds", [](const PartDone& it) { return it.run.seconds; }, "duration")}},
      .context = ContextUse::kNone,
      .progress = "",
      .run = run_part_operation,
      .print = print_part});
}

}  // namespace ggufmill
