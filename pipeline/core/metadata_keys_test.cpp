#include "pipeline/core/metadata_keys.h"

#include "tests/support/catch.h"

using namespace ggufmill;

TEST_CASE("keys are known by name, for any architecture, number, and word") {
  CHECK(known_type("general.version", false) == "string");
  CHECK(known_type("llama.rope.scaling.factor", false) == "float32");
  CHECK(known_type("an-arch.rope.scaling.factor", false) == "float32");
  CHECK(known_type("general.base_model.12.name", false) == "string");
  CHECK(known_type("tokenizer.chat_template.tool_use", false) == "string");
  CHECK(known_type("general.base_model.x.name", false).empty());
  CHECK(known_type("rope.scaling.factor", false).empty());
  CHECK(known_type("a.rope.scaling.factor.b", false).empty());
  CHECK(known_type("my.key", false).empty());
}

TEST_CASE("a key can have a type for a single value and one for a list") {
  CHECK(known_type("llama.attention.head_count_kv", false) == "uint32");
  CHECK(known_type("llama.attention.head_count_kv", true) == "int32[]");
  CHECK(known_type("general.tags", false) == "string[]");
  CHECK(known_type("general.name", true) == "string");
}

TEST_CASE("the specification has some of the keys") {
  CHECK(known_key("llama.context_length")->specification == "uint32,uint64");
  CHECK(known_key("llama.logit_scale")->specification.empty());
  CHECK(is_one_of("uint64", "uint32,uint64"));
  CHECK_FALSE(is_one_of("uint", "uint32,uint64"));
  CHECK_FALSE(is_one_of("uint32", ""));
}
