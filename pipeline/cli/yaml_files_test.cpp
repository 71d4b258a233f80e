// Checks that every pipeline file, recipe and architecture map in the repository and its README passes the lint.
// Sources need not exist.

#include <sstream>
#include <string_view>

#include "pipeline/api/registry.h"
#include "pipeline/config/job.h"
#include "pipeline/config/yaml_reader.h"
#include "stages/huggingface/map/architecture.h"
#include "stages/quantize/recipe.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/needs.h"

using namespace ggufmill;

namespace {

constexpr std::string_view kNothing;

// Returns the errors of a pipeline file as the command line would print them; empty if there are none.
std::string faults_in_job(const std::string& text, const std::string& name) {
  Diagnostics errors;
  parse_batch(text, name, make_registry(), {}, errors);
  std::string faults;
  for (const Error& error : errors.errors()) faults += render(error);
  return faults;
}

// Returns the errors of a recipe or an architecture map; empty if there are none.
std::string faults_in(const std::string& text, const std::string& name, const FieldSpec& fields) {
  Diagnostics errors;
  if (const auto document = read_document(text, name, errors)) lint(document->root, fields, errors);
  std::string faults;
  for (const Error& error : errors.errors()) faults += render(error);
  return faults;
}

// Returns the blocks of a Markdown file that start with ```yaml.
std::vector<std::string> yaml_blocks(const std::string& text) {
  std::vector<std::string> blocks;
  bool inside = false;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!inside && line == "```yaml") blocks.emplace_back();
    if (inside && line != "```") blocks.back() += line + "\n";
    inside = inside ? line != "```" : line == "```yaml";
  }
  return blocks;
}

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> paths;
  for (const std::string& name : names_in(folder))
    if (name.ends_with(".yaml")) paths.push_back(folder + "/" + name);
  return paths;
}

}  // namespace

TEST_CASE("the pipeline files in configs/ pass the lint") {
  GGUFMILL_NEEDS_ALL_WINGS();
  const std::vector<std::string> paths = files_in("configs");
  REQUIRE_FALSE(paths.empty());
  for (const std::string& path : paths)
    if (path != "configs/upstream.yaml")  // no pipeline file, see pipeline/core/CMakeLists.txt
      CHECK(faults_in_job(read_text(path), path) == kNothing);
}

TEST_CASE("the recipes in configs/recipes pass the lint") {
  const std::vector<std::string> paths = files_in("configs/recipes");
  REQUIRE(paths.size() > 30);
  for (const std::string& path : paths) CHECK(faults_in(read_text(path), path, recipe_fields()) == kNothing);
}

TEST_CASE("the maps in configs/architectures pass the lint") {
  const std::vector<std::string> paths = files_in("configs/architectures");
  REQUIRE(paths.size() > 30);
  const FieldSpec fields = huggingface::architecture_fields();
  for (const std::string& path : paths) CHECK(faults_in(read_text(path), path, fields) == kNothing);
}

TEST_CASE("the YAML in the user documentation passes the lint") {
  GGUFMILL_NEEDS_ALL_WINGS();
  for (const std::string page : {"README.md", "pipeline/cli/README.md"}) {
    const std::vector<std::string> blocks = yaml_blocks(read_text(page));
    REQUIRE_FALSE(blocks.empty());
    for (const std::string& block : blocks) {
      CAPTURE(block);
      if (block.find("version:") != std::string::npos)
        CHECK(faults_in_job(block, page) == kNothing);
      else if (block.find("serves:") != std::string::npos)
        CHECK(faults_in(block, page, huggingface::architecture_fields()) == kNothing);
      else
        CHECK(faults_in(block, page, recipe_fields()) == kNothing);
    }
  }
}
