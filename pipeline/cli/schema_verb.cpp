// `ggufmill schema`: prints the JSON Schema or the reference page of pipeline files, recipes and architecture maps,
// generated from the field tables.

#include <cstdio>

#include "pipeline/api/catalog.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/reference_page.h"
#include "pipeline/cli/verb.h"

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
  const Result<std::string> schema = schema_of(what);
  if (!schema) return fail(schema.error());
  std::string text = schema.value();
  if (as_page)
    text = what == "pipeline" ? pipeline_reference() : what == "recipe" ? recipe_reference() : architecture_reference();
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace

const Verb kSchemaVerb{"schema", VerbGroup::kReference,
                       "Print the JSON Schema or the reference of pipeline files, recipes, and maps", schema_command,
                       schema_verb};

}  // namespace ggufmill
