// `ggufmill schema`: prints the JSON Schema or the reference page of pipeline files, recipes and architecture maps,
// generated from the field tables.

#include <cstdio>

#include "pipeline/api/catalog.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/operation_pages.h"
#include "pipeline/cli/reference_page.h"
#include "pipeline/cli/verb.h"

namespace ggufmill {
namespace {

CommandSpec schema_command() {
  CommandSpec spec;
  spec.usage = "ggufmill schema [pipeline | recipe | architecture | operations] [options]";
  spec.description =
      "Print the JSON Schema of pipeline files, recipes, or architecture maps, for editors that complete and check as "
      "you type. With --reference, print the same as a page to read. The operations are what the program, the C "
      "interface "
      "and the Python module can do; they have a reference, and with --python the functions of the module.";
  spec.examples =
      "  ggufmill schema > pipeline.schema.json\n"
      "  ggufmill schema recipe --reference";
  auto add = spec.options.add_options();
  add("reference", "print a reference page in Markdown");
  add("python", "print the operations as functions of Python");
  spec.positional = "what";
  spec.words = {"pipeline", "recipe", "architecture", "operations"};
  spec.optional = true;
  return spec;
}

int print_operations(const std::string& what, bool as_page, bool in_python) {
  if (what != "operations")
    return fail(usage_error("--python prints operations only", "run `ggufmill schema operations --python`"));
  if (as_page == in_python)
    return fail(usage_error("operations have no schema", "give either --reference or --python"));
  std::fputs((as_page ? operations_reference() : operations_in_python()).c_str(), stdout);
  return 0;
}

int schema_verb(const Parsed& parsed) {
  const auto what = value_or<std::string>(parsed.values, "what", "pipeline");
  const bool as_page = parsed.values.count("reference") > 0, in_python = parsed.values.count("python") > 0;
  if (what == "operations" || in_python) return print_operations(what, as_page, in_python);
  const Result<std::string> schema = schema_of(what);
  if (!schema) return fail(schema.error());
  std::string text = schema.value();
  if (as_page)
    text = what == "pipeline" ? pipeline_reference() : what == "recipe" ? recipe_reference() : architecture_reference();
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace

const Verb kSchemaVerb{"schema", OperationGroup::kReference,
                       "Print the JSON Schema or the reference of pipeline files, recipes, and maps", schema_command,
                       schema_verb};

}  // namespace ggufmill
