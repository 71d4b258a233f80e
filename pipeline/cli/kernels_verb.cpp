// `ggufmill kernels`: lists the kernel modules, loaded and rejected, and the kernel used for each type.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>

#include "pipeline/api/describe.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/planning.h"
#include "pipeline/cli/table.h"
#include "pipeline/cli/verb.h"
#include "pipeline/core/text.h"
#include "pipeline/report/json_text.h"

namespace ggufmill {
namespace {

using Strings = std::vector<std::string>;

CommandSpec kernels_command() {
  CommandSpec spec;
  spec.usage = "ggufmill kernels [options]";
  spec.description =
      "List all kernel modules that were found, with the reason for each refused module, and the kernel chosen for "
      "each type.";
  spec.examples =
      "  ggufmill kernels\n"
      "  ggufmill kernels --isa x86-64-v2 --kernel-dir ./my-kernels";
  auto add = spec.options.add_options();
  add("kernel-dir", boost::program_options::value<Strings>()->composing(), "folder with additional kernel modules");
  add("isa", boost::program_options::value<std::string>(), "use only kernels for this ISA");
  add("json",
      "print one JSON object: {modules: [{path, name, version, isa, loaded, refusal, kernels}], types: [{type, "
      "decode, encode, encoders}]}");
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
    for (const std::string& refusal : report.kernel_refusals)
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

int kernels_verb(const Parsed& parsed) {
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

const Verb kKernelsVerb{"kernels", VerbGroup::kReference, "List the kernel modules, loaded and refused",
                        kernels_command, kernels_verb};

}  // namespace ggufmill
