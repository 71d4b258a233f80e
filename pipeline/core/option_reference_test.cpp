#include "pipeline/core/option_reference.h"

#include "pipeline/core/error.h"
#include "tests/support/catch.h"

using namespace ggufmill;

TEST_CASE("references are replaced by what their caller writes") {
  const std::string text =
      "give " + option_reference("max_rmse") + " or " + option_reference("memory", "8192") + ", not both";
  CHECK(replace_option_references(text, [](std::string_view name, std::string_view value) {
          return "<" + std::string(name) + "|" + std::string(value) + ">";
        }) == "give <max_rmse|> or <memory|8192>, not both");
}

TEST_CASE("a text without references stays as it is") {
  CHECK(replace_option_references("a \x01 b", [](auto, auto) { return std::string("x"); }) == "a \x01 b");
}

TEST_CASE("a text from outside is not a reference, whatever it contains") {
  const OptionWriter write = [](auto, auto) { return std::string("x"); };
  for (const std::string text : {"\x01threads\x02\x03",
                                 "\x01threads\x02"
                                 "4\x03",
                                 "\x01\x02\x03"}) {
    CHECK(replace_option_references(text, write) == text);
    CHECK_FALSE(has_option_reference(text));
    CHECK(replace_option_references(option_reference("set", text),
                                    [](auto, std::string_view value) { return std::string(value); }) == text);
  }
}

TEST_CASE("a reference that nobody has replaced is the name of the option") {
  CHECK(render(usage_error("too small", "at least " + option_reference("memory", "8192"))) ==
        "error: too small\n  help: at least memory: 8192\n");
}

TEST_CASE("a text with two forms names keys unless that with options is chosen") {
  const std::string text = "x; " + keys_or_options("set `a: b`", "give " + option_reference("a", "b")) + ", too";
  CHECK(has_keys_or_options(text));
  CHECK(with_plain_options(text) == "x; set `a: b`, too");
  CHECK(with_plain_options(as_for_options(text)) == "x; give a: b, too");
  CHECK_FALSE(has_keys_or_options(as_for_options(text)));
  const Error error = with_options(with_options(usage_error("y", "keys"), "first"), "options");
  CHECK(as_for_keys(error.help) == "keys");
  CHECK(as_for_options(error.help) == "options");
}
