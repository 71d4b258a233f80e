// `schema`: prints the JSON Schema or the reference page of pipeline files, recipes and maps, generated from the field
// tables, and what is generated from the table of operations.

#include "pipeline/config/schema.h"
#include "pipeline/api/operations/operation.h"
#include "pipeline/api/registry.h"
#include "pipeline/call/reference_page.h"
#include "pipeline/config/job.h"
#include "pipeline/core/option_reference.h"
#include "stages/huggingface/map/architecture.h"
#include "stages/quantize/recipe.h"

namespace ggufmill {
namespace {

enum class SchemaKind { kPipeline, kRecipe, kArchitecture, kOperations };
constexpr std::string_view kSchemaWords[] = {"pipeline", "recipe", "architecture", "operations"};  // SchemaKind

struct SchemaRequest {
  SchemaKind what = SchemaKind::kPipeline;
  bool reference = false, python = false;
};

struct SchemaText {
  std::string text;
};

Status check_schema(const SchemaRequest& request) {
  const bool is_of_operations = request.what == SchemaKind::kOperations;
  if (request.python && !is_of_operations)
    return usage_error(option_reference("python") + " prints operations only",
                       "run `ggufmill schema operations --python`");
  if (is_of_operations && request.reference == request.python)
    return usage_error("operations have no schema",
                       fmt::format("give either {} or {}", option_reference("reference"), option_reference("python")));
  return ok();
}

std::string reference_of(SchemaKind what) {
  switch (what) {
    case SchemaKind::kPipeline:
      return pipeline_reference();
    case SchemaKind::kRecipe:
      return recipe_reference();
    case SchemaKind::kArchitecture:
      return architecture_reference();
    case SchemaKind::kOperations:
      break;
  }
  return operations_reference();
}

Result<Answer<SchemaText>> run_schema(const Context&, const SchemaRequest& request, const Call&) {
  if (request.python) return Answer<SchemaText>{{operations_in_python()}};
  if (request.reference) return Answer<SchemaText>{{reference_of(request.what)}};
  return Answer<SchemaText>{{json_schema(request.what == SchemaKind::kPipeline ? job_fields(make_registry())
                                         : request.what == SchemaKind::kRecipe ? recipe_fields()
                                                                               : huggingface::architecture_fields())}};
}

}  // namespace

// The operations of this folder.
std::vector<OperationSpec> call_operations();

std::vector<OperationSpec> call_operations() {
  using Schema = SchemaRequest;
  return {operation(OperationOf<SchemaRequest, SchemaText>{
      .name = "schema",
      .group = OperationGroup::kReference,
      .summary = "Print the JSON Schema or the reference of pipeline files, recipes, and maps",
      .description =
          "Print the JSON Schema of pipeline files, recipes, or architecture maps, for editors that complete and check "
          "as you type. With @reference, print the same as a page to read. The operations of the program, the C "
          "interface, and the Python module have no schema: with @reference, print their reference, and with @python, "
          "the functions of the module.",
      .examples = "  ggufmill schema > pipeline.schema.json\n"
                  "  ggufmill schema recipe --reference",
      .usage_words = "[pipeline | recipe | architecture | operations]",
      .prints_data = true,
      .options = {option("what", &Schema::what, enumeration<SchemaKind>(kSchemaWords), "what to describe")
                      .optional_word("KIND"),
                  option("reference", &Schema::reference, "print a reference page in Markdown"),
                  option("python", &Schema::python, "print the operations as functions of Python")},
      .result = {.members = {result("text", &SchemaText::text, "the schema, or the page")}, .is_alone = true},
      .context = ContextUse::kNone,
      .check = check_schema,
      .run = run_schema,
      .print = [](const SchemaText& it, TextOutput& to) { to.out = it.text; }})};
}

}  // namespace ggufmill
