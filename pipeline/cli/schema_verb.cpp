// `ggufmill schema`: the JSON Schema or the reference page of pipeline files and recipes, from the field tables.

#include <fmt/format.h>

#include <cstdio>

#include "pipeline/api/registry.h"
#include "pipeline/cli/command_line.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/reference_page.h"
#include "pipeline/config/job.h"
#include "pipeline/config/schema.h"
#include "stages/quantize/recipe.h"

namespace ggufmill {
namespace {

CommandSpec command() {
  CommandSpec spec;
  spec.usage = "ggufmill schema [pipeline | recipe] [options]";
  spec.description =
      "Prints the JSON Schema of pipeline files or of recipes, for editors that complete and check while you type;\n"
      "with --reference, the same as a page to read.";
  spec.examples =
      "  ggufmill schema > pipeline.schema.json\n"
      "  ggufmill schema recipe --reference";
  spec.options.add_options()("reference", "a page in Markdown");
  spec.positional = "what";
  spec.optional = true;
  return spec;
}

}  // namespace

int schema_verb(const Arguments& arguments) {
  const Parsed parsed = parse_command(command(), arguments);
  if (parsed.exit_code) return *parsed.exit_code;
  const auto what = value_or<std::string>(parsed.values, "what", "pipeline");
  if (what != "pipeline" && what != "recipe")
    return fail(usage_error(fmt::format("'{}' has no schema", what), "write pipeline or recipe"));
  const bool pipeline = what == "pipeline";
  const std::string text = parsed.values.count("reference")
                               ? (pipeline ? pipeline_reference() : recipe_reference())
                               : json_schema(pipeline ? job_fields(make_registry()) : recipe_fields());
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace ggufmill
