// `ggufmill run`: carries out a pipeline file.

#include <fmt/format.h>

#include "pipeline/cli/command_line.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/planning.h"
#include "pipeline/cli/running.h"

namespace ggufmill {
namespace {

namespace po = boost::program_options;

CommandSpec command() {
  CommandSpec spec;
  spec.usage = "ggufmill run FILE [options]";
  spec.description =
      "Carries out a pipeline file: reads the source once and writes all outputs.\n"
      "An output appears under its name whole or not at all.";
  spec.examples =
      "  ggufmill run configs/demo.yaml\n"
      "  ggufmill run job.yaml --set outputs.0.gguf=/data/out.gguf --overwrite";
  spec.positional = "file";
  add_job_options(spec.options);
  auto add = spec.options.add_options();
  add("overwrite", "replace outputs that are there already");
  add("threads", po::value<unsigned>(), "as limits.threads");
  add("io", po::value<std::string>(), "as limits.io: cached, streaming or direct");
  add_run_options(spec.options);
  return spec;
}

Status override_limits(const po::variables_map& values, Limits& limits) {
  if (values.count("threads")) limits.threads = values["threads"].as<unsigned>();
  if (!values.count("io")) return ok();
  const auto io = values["io"].as<std::string>();
  limits.io = io_mode_named(io);
  if (limits.io) return ok();
  return usage_error(fmt::format("unknown I/O mode '{}'", io),
                     fmt::format("--io is one of: {}", fmt::join(io_mode_names(), ", ")));
}

}  // namespace

int run_verb(const Arguments& arguments) {
  const Parsed parsed = parse_command(command(), arguments);
  if (parsed.exit_code) return *parsed.exit_code;
  Diagnostics errors;
  auto planned = plan_from(parsed.values, errors);
  if (!planned) return fail(errors);
  if (const Status limits = override_limits(parsed.values, planned->plan.limits); !limits) return fail(limits.error());
  return execute(*planned, parsed.values, parsed.values.count("overwrite") > 0);
}

}  // namespace ggufmill
