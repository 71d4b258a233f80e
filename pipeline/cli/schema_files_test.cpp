// Checks that the schemas in configs/ match the field tables and that the tables pass their own lint.

#include "pipeline/api/registry.h"
#include "pipeline/call/reference_page.h"
#include "pipeline/config/job.h"
#include "pipeline/config/reference.h"
#include "pipeline/config/schema.h"
#include "stages/arrays/arrays.h"
#include "stages/huggingface/map/architecture.h"
#include "stages/quantize/recipe.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/needs.h"

using namespace ggufmill;

TEST_CASE("configs/pipeline.schema.json is current") {
  GGUFMILL_NEEDS_ALL_WINGS();
  INFO("to update it, run: ggufmill schema pipeline > configs/pipeline.schema.json");
  CHECK((read_text("configs/pipeline.schema.json") == json_schema(job_fields(make_registry()))));
}

TEST_CASE("configs/recipe.schema.json is current") {
  GGUFMILL_NEEDS_ALL_WINGS();
  INFO("to update it, run: ggufmill schema recipe > configs/recipe.schema.json");
  CHECK((read_text("configs/recipe.schema.json") == json_schema(recipe_fields())));
}

TEST_CASE("configs/architecture.schema.json is current") {
  GGUFMILL_NEEDS_ALL_WINGS();
  INFO("to update it, run: ggufmill schema architecture > configs/architecture.schema.json");
  CHECK((read_text("configs/architecture.schema.json") == json_schema(huggingface::architecture_fields())));
}

TEST_CASE("configs/REFERENCE.md is current") {
  GGUFMILL_NEEDS_ALL_WINGS();
  INFO(
      "to update it, run: (ggufmill schema --reference; for i in recipe architecture; do echo; ggufmill schema $i "
      "--reference; "
      "done) > configs/REFERENCE.md");
  CHECK((read_text("configs/REFERENCE.md") ==
         pipeline_reference() + "\n" + recipe_reference() + "\n" + architecture_reference()));
}

TEST_CASE("configs/OPERATIONS.md is current") {
  GGUFMILL_NEEDS_ALL_WINGS();
  INFO("to update it, run: ggufmill schema operations --reference > configs/OPERATIONS.md");
  CHECK((read_text("configs/OPERATIONS.md") == operations_reference()));
}

TEST_CASE("the operations of the Python module are current") {
  GGUFMILL_NEEDS_ALL_WINGS();
  INFO("to update them, run: ggufmill schema operations --python > pipeline/python/ggufmill/_operations.py");
  CHECK((read_text("pipeline/python/ggufmill/_operations.py") == operations_in_python()));
}

TEST_CASE("every field is documented, and its examples and defaults pass its own lint") {
  for (const Error& error : check_examples(job_fields(make_registry()))) FAIL_CHECK(render(error));
  for (const Error& error : check_examples(recipe_fields())) FAIL_CHECK(render(error));
  for (const Error& error : check_examples(arrays_fields())) FAIL_CHECK(render(error));
}
