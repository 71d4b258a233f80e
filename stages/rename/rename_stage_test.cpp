#include "stages/rename/rename_stage.h"

#include "tests/support/apply_stage.h"
#include "tests/support/catch.h"

using namespace ggufmill;

namespace {

Model model_of(const std::vector<std::string>& names) {
  Model model;
  for (const std::string& name : names) model.tensors.push_back(bare_tensor(name));
  return model;
}

std::vector<std::string> renamed(std::string_view yaml, const std::vector<std::string>& names) {
  const Model model = apply_stage(rename_stage(), yaml, model_of(names)).value();
  std::vector<std::string> after;
  for (const Tensor& tensor : model.tensors) after.push_back(tensor.name);
  return after;
}

Error refusal(std::string_view yaml, const std::vector<std::string>& names) {
  const Result<Model> after = apply_stage(rename_stage(), yaml, model_of(names));
  REQUIRE_FALSE(after);
  return after.error();
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("rename replaces the first match in each name") {
  CHECK(renamed(R"([{match: 'a', to: 'X'}])", {"banana", "kiwi"}) == Names{"bXnana", "kiwi"});
}

TEST_CASE("rename inserts groups") {
  CHECK(renamed(R"([{match: '^model\.layers\.(\d+)\.(mlp)', to: 'blk.$1.$2_$&'}])", {"model.layers.12.mlp.up"}) ==
        Names{"blk.12.mlp_model.layers.12.mlp.up"});
}

TEST_CASE("rename takes an escaped dollar literally") {
  CHECK(renamed(R"([{match: 'a', to: '\$1'}])", {"a"}) == Names{"$1"});
}

TEST_CASE("rename can remove a part of the name") {
  CHECK(renamed(R"([{match: '^v\.', to: ''}])", {"v.blk.0", "b"}) == Names{"blk.0", "b"});
}

TEST_CASE("later rules see the result of earlier rules") {
  CHECK(renamed(R"([{match: a, to: b}, {match: b, to: c}])", {"a"}) == Names{"c"});
  CHECK(renamed(R"([{match: '^a$', to: t}, {match: '^b$', to: a}, {match: '^t$', to: b}])", {"a", "b"}) ==
        Names{"b", "a"});
}

TEST_CASE("a rule that matches no tensor is an error at its position") {
  const Error error = refusal("[{match: a, to: b},\n {match: 'qq+', to: c}]", {"a"});
  CHECK(error.code == ExitCode::kUsage);
  CHECK(error.where == "a.yaml:2:10");
  CHECK(error.what == "no tensor matches 'qq+'");
}

TEST_CASE("two tensors with the same name are refused") {
  CHECK(refusal(R"([{match: '\d', to: ''}])", {"a1", "a2"}).what == "tensors 'a1' and 'a2' would both be named 'a'");
  CHECK(refusal(R"([{match: '^a$', to: 'b'}])", {"a", "b"}).what == "tensors 'a' and 'b' would both be named 'b'");
}

TEST_CASE("impossible new names are refused") {
  CHECK(refusal(R"([{match: '^a$', to: ''}])", {"a"}).what == "the new name of 'a' is empty");
  CHECK(refusal(R"([{match: '^.', to: ''}])", {"\xc3\xa4"}).what == "the new name of '\xc3\xa4' is not UTF-8: '\\xa4'");
  CHECK(refusal(R"([{match: a, to: "b\0"}])", {"a"}).what == "a name must be UTF-8 without zero bytes");
  const std::string doubling = "{match: '^(.*)$', to: '$1$1'},";
  std::string yaml = "[";
  for (int i = 0; i < 17; ++i) yaml += doubling;
  CHECK(refusal(yaml + "]", {"a"}).what.ends_with("makes it longer than 65535 bytes"));
}

TEST_CASE("a group that is missing from the pattern is refused") {
  const Error error = refusal(R"([{match: '(a)', to: '$1$2'}])", {"a"});
  CHECK(error.where == "a.yaml:1:21");
  CHECK(error.what == "'$2' is used, but '(a)' has 1 group");
}

TEST_CASE("a pattern with runaway backtracking is an error") {
  CHECK(refusal(R"([{match: '^(a+a+)+$', to: 'b'}])", {std::string(60, 'a').append("b")}).what.find("takes too long") !=
        std::string::npos);
}

TEST_CASE("rename needs both keys and at least one rule") {
  CHECK(refusal("[{match: a}]", {"a"}).code == ExitCode::kUsage);
  CHECK(refusal("[{match: '(', to: b}]", {"a"}).code == ExitCode::kUsage);
  CHECK(refusal("[]", {"a"}).code == ExitCode::kUsage);
}
