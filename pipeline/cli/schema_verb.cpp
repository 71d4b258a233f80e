// `ggufmill schema`: prints the JSON Schema or the reference page of pipeline files, recipes and architecture maps,
// generated from the field tables.

#include <fmt/format.h>

#include <cstdio>

#include "pipeline/api/registry.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/reference_page.h"
#include "pipeline/cli/verb.h"
#include "pipeline/config/job.h"
#include "pipeline/config/schema.h"
#include "stages/huggingface/architecture.h"
#include "stages/quantize/recipe.h"

namespace ggufmill {
namespace {

CommandSpec schema_command() {
  CommandSpec spec;
  spec.usage = "ggufmill schema [pipeline | recipe | architecture] [options]";
  spec.description =
      "Print the JSON Schema of pipeline files, recipes, or architecture maps, for editors that complete and check as "
      "you type. With --reference, print the same as a page to read.";
  spec.examples =
      "  ggufmill schema > pipeline.schema.json\n"
      "  ggufmill schema recipe --reference";
  spec.options.add_options()("reference", "print a reference page in Markdown");
  spec.positional = "what";
  spec.words = {"pipeline", "recipe", "architecture"};
  spec.optional = true;
  return spec;
}

int schema_verb(const Parsed& parsed) {
  const auto what = value_or<std::string>(parsed.values, "what", "pipeline");
  const bool as_page = parsed.values.count("reference") > 0;
  std::string text;
  if (what == "pipeline")
    text = as_page ? pipeline_reference() : json_schema(job_fields(make_registry()));
  else if (what == "recipe")
    text = as_page ? recipe_reference() : json_schema(recipe_fields());
  else if (what == "architecture")
    text = as_page ? architecture_reference() : json_schema(huggingface::architecture_fields());
  else
    return fail(usage_error(fmt::format("there is no schema '{}'", what), "give pipeline, recipe, or architecture"));
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace

const Verb kSchemaVerb{"schema", VerbGroup::kReference,
                       "Print the JSON Schema or the reference of pipeline files, recipes, and maps", schema_command,
                       schema_verb};

}  // namespace ggufmill
