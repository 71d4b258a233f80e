#include "stages/metadata/metadata_stage.h"

#include "tests/support/catch.h"

using namespace ggufmill;

namespace {

ConfigNode scalar(std::string text) {
  ConfigNode node;
  node.kind = ConfigNode::Kind::kScalar;
  node.scalar = std::move(text);
  return node;
}

ConfigNode parent(ConfigNode::Kind kind) {
  ConfigNode node;
  node.kind = kind;
  return node;
}

}  // namespace

TEST_CASE("the metadata stage removes, then sets in place or at the end") {
  Model model;
  for (const char* key : {"a", "b", "c"}) model.metadata.add(key, metadata_string("old"));
  ConfigNode set = parent(ConfigNode::Kind::kMap);
  set.entries = {{"c", {}, scalar("new")}, {"d", {}, scalar("1")}};
  ConfigNode remove = parent(ConfigNode::Kind::kList);
  remove.items = {scalar("a"), scalar("nowhere")};
  ConfigNode value = parent(ConfigNode::Kind::kMap);
  value.entries = {{"set", {}, set}, {"remove", {}, remove}};

  const Model after = metadata_stage().make(value).value()->apply(model).value();

  REQUIRE(after.metadata.entries().size() == 3);
  CHECK(after.metadata.entries()[0].key == "b");
  CHECK(as_string(after.metadata.entries()[1].value) == "new");
  CHECK(after.metadata.entries()[2].key == "d");
  CHECK(after.warnings.size() == 1);
}
