// `ggufmill kernels`: lists the kernel modules, loaded and rejected, and the kernel used for each type.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>

#include "pipeline/api/describe.h"
#include "pipeline/api/table.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/planning.h"
#include "pipeline/cli/signals.h"
#include "pipeline/cli/verb.h"
#include "pipeline/core/text.h"
#include "pipeline/report/json_text.h"

namespace ggufmill {
namespace {

CommandSpec kernels_command() {
  CommandSpec spec;
  spec.usage = "ggufmill kernels [options] [--check MODULE [--reference MODULE] [--type NAME ...] [--time]]";
  spec.description =
      "List all kernel modules that were found, with the reason for each refused module, and the kernels chosen for "
      "each type. With --check, run the kernels of a module to see whether they follow the rules of the ABI, which "
      "plugins/README.md lists. Each check runs in a process of its own, for at most a minute of computing, so that a "
      "defect is reported and does not end the program. The exit code is 3 if a check fails.";
  spec.examples =
      "  ggufmill kernels\n"
      "  ggufmill kernels --isa x86-64-v2 --kernel-dir ./my-kernels\n"
      "  ggufmill kernels --check my-kernels/mine.so\n"
      "  ggufmill kernels --check mine-avx2.so --reference mine.so";
  auto add = spec.options.add_options();
  add("kernel-dir", boost::program_options::value<Strings>()->composing(), "folder with additional kernel modules");
  add("isa", boost::program_options::value<std::string>(), "use only kernels for this ISA");
  add("check", boost::program_options::value<std::string>(), "check the kernels of this module (a file)");
  add("reference", boost::program_options::value<std::string>(),
      "with --check: the module whose bytes the kernels must reproduce; default: ggufmill's own kernels");
  add("type", boost::program_options::value<Strings>()->composing(), "with --check: only this type");
  add("time", "with --check: also measure how fast the kernels are, on one thread");
  add("json",
      "print one JSON object: {modules: [{path, name, version, isa, loaded, refusal, kernels}], types: [{type, "
      "decode, encode, encoders}]}; with --check: {module: {path, name, version, isa}, checks: [{type, operation, "
      "encoder, check, result, why}], passed, failed, skipped, times}");
  return spec;
}

void print_text(const Kernels& kernels) {
  std::vector<Row> rows;
  for (const ModuleReport& report : kernels.reports())
    rows.push_back({report.path, report.name, report.version, report.isa, report.loaded ? "loaded" : "refused",
                    std::to_string(report.kernels), report.refusal});
  std::fputs(render_table({name_column("module"),
                           {"name"},
                           whole_column("version"),
                           whole_column("ISA"),
                           whole_column("state"),
                           {"kernels", Align::kRight},
                           {"why"}},
                          rows)
                 .c_str(),
             stdout);
  for (const ModuleReport& report : kernels.reports())
    for (const std::string& refusal : report.loaded ? report.kernel_refusals : Strings())
      fmt::print("{}\n", printable(report.path + ": " + refusal));
  rows.clear();
  for (const TypeInfo* type : kernels.types().all()) {
    if (!kernels.decode(type->id) && !kernels.encode(type->id)) continue;
    Strings others;
    for (const auto& [name, kernel] : other_encoders(*type, kernels)) others.push_back(name + ": " + kernel);
    rows.push_back({std::string(type->name), kernel_text(kernels.decode(type->id)),
                    kernel_text(kernels.encode(type->id)), fmt::format("{}", fmt::join(others, ", "))});
  }
  fmt::print("\n{}", render_table({whole_column("type"), {"decode"}, {"encode"}, {"other encoders"}}, rows));
}

void print_checks(const ModuleConformance& checked) {
  std::vector<Row> rows;
  for (const conformance::ConformanceResult& result : checked.results)
    rows.push_back({result.type, result.operation, result.encoder, result.check,
                    std::string(result_text(result.finding.kind)), result.finding.detail});
  std::fputs(render_table({whole_column("type"),
                           whole_column("operation"),
                           whole_column("encoder"),
                           whole_column("check"),
                           whole_column("result"),
                           {"why"}},
                          rows)
                 .c_str(),
             stdout);
  using Kind = conformance::Finding::Kind;
  fmt::print("{}: {} checks passed, {} failed, {} skipped\n", printable(checked.module.path),
             checked.count(Kind::kPassed), checked.count(Kind::kFailed), checked.count(Kind::kSkipped));
}

void print_times(const ModuleConformance& checked) {
  std::vector<Row> rows;
  for (const conformance::KernelTime& time : checked.times)
    rows.push_back({time.type, time.operation, time.encoder, time.weighted ? "yes" : "no",
                    fmt::format("{:.3f}", time.rate / 1e9),
                    time.reference > 0 ? fmt::format("{:.2f}", time.rate / time.reference) : ""});
  fmt::print("\n{}", render_table({whole_column("type"),
                                   whole_column("operation"),
                                   whole_column("encoder"),
                                   whole_column("importance"),
                                   {"GB of F32 per second", Align::kRight},
                                   {"times the reference", Align::kRight}},
                                  rows));
}

int check_modules(const Parsed& parsed) {
  const auto context = open_context(parsed.values);
  if (!context) return fail(context.error());
  ConformanceOptions options;
  options.loaded = &context.value().kernels();
  options.module = parsed.values["check"].as<std::string>();
  options.reference = value_or<std::string>(parsed.values, "reference", {});
  options.types = value_or<Strings>(parsed.values, "type", {});
  options.times = parsed.values.count("time") != 0;
  options.stop = catch_signals();
  const auto checked = check_module(options);
  if (!checked) {
    const int code = fail(checked.error());
    return signal_exit_code().value_or(code);
  }
  if (parsed.values.count("json"))
    std::puts(to_json_text(describe_conformance(checked.value())).c_str());
  else
    print_checks(checked.value());
  if (options.times && !parsed.values.count("json")) print_times(checked.value());
  const bool is_right = checked.value().count(conformance::Finding::Kind::kFailed) == 0;
  return static_cast<int>(is_right ? ExitCode::kOk : ExitCode::kVerification);
}

int kernels_verb(const Parsed& parsed) {
  if (parsed.values.count("check")) return check_modules(parsed);
  for (const char* option : {"reference", "type", "time"})
    if (parsed.values.count(option))
      return fail(usage_error(fmt::format("--{} needs --check", option), "name the module: --check MODULE"));
  const auto context = open_context(parsed.values);
  if (!context) return fail(context.error());
  const Kernels& kernels = context.value().kernels();
  if (parsed.values.count("json"))
    std::puts(to_json_text(describe_kernels(kernels)).c_str());
  else
    print_text(kernels);
  return 0;
}

}  // namespace

const Verb kKernelsVerb{"kernels", OperationGroup::kReference, "List the kernel modules, loaded and refused",
                        kernels_command, kernels_verb};

}  // namespace ggufmill
