#include "pipeline/core/pattern.h"

#include "tests/support/catch.h"

using namespace ggufmill;

TEST_CASE("a pattern is found anywhere in a name") {
  const Pattern pattern = Pattern::compile(R"(blk\.\d+\.ffn_(up|down))").value();
  CHECK(pattern.matches("blk.17.ffn_down.weight").value());
  CHECK(pattern.matches("x.blk.0.ffn_up").value());
  CHECK_FALSE(pattern.matches("blk.x.ffn_down").value());
  CHECK(pattern.text() == R"(blk\.\d+\.ffn_(up|down))");
}

TEST_CASE("patterns have Perl's anchors, classes and look-around") {
  CHECK_FALSE(Pattern::compile("^down").value().matches("ffn_down").value());
  CHECK(Pattern::compile("down$").value().matches("ffn_down").value());
  CHECK(Pattern::compile(R"(blk\.(?!0\.))").value().matches("blk.1.x").value());
  CHECK_FALSE(Pattern::compile(R"(blk\.(?!0\.))").value().matches("blk.0.x").value());
}

TEST_CASE("a pattern that matches all of a name gives the groups") {
  const Pattern pattern = Pattern::compile("(a+)(b)?(?:c)(d*)").value();
  const Pattern::Groups groups = *pattern.match_whole("aac").value();
  CHECK(groups == Pattern::Groups{"aa", std::nullopt, ""});
  CHECK_FALSE(pattern.match_whole("aacx").value().has_value());
  CHECK_FALSE(pattern.match_whole("xaac").value().has_value());
}

TEST_CASE("a copy of a pattern matches like the original") {
  Pattern pattern = Pattern::compile("a+b").value();
  const Pattern copy = pattern;
  pattern = Pattern::compile("c").value();
  CHECK(copy.matches("xaab").value());
}

TEST_CASE("the error for a bad pattern has a reason and a position") {
  CHECK(render(Pattern::compile("ffn_(up").error()) ==
        "error: bad regular expression 'ffn_(up': unmatched marking parenthesis ( or \\(\n"
        "  at character 8\n"
        "  help: escape special characters with a backslash: 'a\\.b\\('\n");
  CHECK_FALSE(Pattern::compile("a|*"));
  CHECK(render(Pattern::compile("").error()) ==
        "error: bad regular expression '': it is empty\n  at character 1\n"
        "  help: '.' matches every name\n");
}

TEST_CASE("a runaway pattern is an error, not a hang") {
  const Pattern pattern = Pattern::compile("(a|aa|a*)*(a|aa)*(a*)*b").value();
  const Result<bool> found = pattern.matches(std::string(200, 'a'));
  REQUIRE_FALSE(found);
  CHECK(found.error().what.find("takes too long on 'aaaa") != std::string::npos);
}

TEST_CASE("patterns that are too long or too deep are refused") {
  CHECK_FALSE(Pattern::compile(std::string(4097, 'a')));
  CHECK_FALSE(Pattern::compile(std::string(2000, '(') + std::string(2000, ')')));
  CHECK(Pattern::compile(std::string(4096, 'a')));
}

TEST_CASE("a replacement that makes a name very long is an error") {
  const Pattern all = Pattern::compile("^(.*)$").value();
  const std::string name(40'000, 'a');
  CHECK(all.replace(name, "$1$1").error().what.ends_with("makes it longer than 65535 bytes"));
  std::string format;
  for (int i = 0; i < 1'000'000; ++i) format += "$1";
  CHECK(all.replace(name, format).error().what.ends_with("makes it longer than 65535 bytes"));
}

TEST_CASE("a name that is longer than any tensor's can still be replaced by a shorter one") {
  const std::string path(100'000, 'a');
  CHECK(Pattern::compile("b$").value().replace(path + "b", "").value() == path);
}
