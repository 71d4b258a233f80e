#include "pipeline/config/reference.h"

#include "pipeline/config/job.h"
#include "pipeline/config/test_registry.h"
#include "tests/support/catch.h"

using namespace ggufmill;

TEST_CASE("the reference page has one row per key") {
  CHECK(field_reference_markdown(testing::metadata_field()) == R"(| Key | Value | Default | Meaning |
|---|---|---|---|
| `metadata` | a map |  | Changes metadata. Example: `{remove: [general.url]}` |
| `metadata.set` | a map |  | Keys to set. Example: `{general.license: mit}` |
| `metadata.set.NAME` | any value |  | The value. |
| `metadata.remove` | a list |  | Keys to remove. Example: `[general.url]` |
| `metadata.remove[]` | a string |  | A key. |
)");
}

TEST_CASE("a bar in a cell is escaped") {
  const FieldSpec field{
      .name = "match", .kind = FieldKind::kRegex, .doc = "One of a|b.", .required = true, .example = "a|b"};
  CHECK(field_reference_markdown(field).find(
            "| `match` | a regular expression | required | One of a\\|b. Example: `a\\|b` |") != std::string::npos);
}

TEST_CASE("the job's own table passes its own lint") {
  for (const Error& error : check_examples(job_fields(testing::make_registry()))) FAIL_CHECK(render(error));
}

TEST_CASE("an invalid table is detected") {
  const FieldSpec size{
      .name = "size", .kind = FieldKind::kBytes, .doc = "D.", .default_text = "many", .example = "a: {b"};
  const FieldSpec bare{.name = "bare", .required = true};
  const FieldSpec list{.name = "list", .kind = FieldKind::kList, .doc = "D."};
  std::string out;
  for (const Error& error : check_examples({.kind = FieldKind::kMap, .fields = {size, bare, list}}))
    out += render(error);
  CHECK(out == R"(size (example):1:6: error: expected ',' or '}' here
     1 | a: {b
       |      ^
  help: put text that contains any of { } [ ] , : # in quotes, such as '${NAME}'
size (default):1:1: error: 'many' is not a size
     1 | many
       | ^^^^
  help: write a number and a unit: 512MiB, 20G, 1.5GiB
error: field 'bare' has no doc
error: field 'bare' is required and has no example
error: field 'list' has 0 items
)");
}
