#include "pipeline/core/wings.h"

#include "tests/support/catch.h"

using namespace ggufmill;

TEST_CASE("the words of a wing are patterns and numbers") {
  const char* const words = "one T?_K* *_R4 97..511";
  for (const char* word : {"one", "ONE", "T2_K", "t4_ks", "x_r4", "97", "511"}) {
    CAPTURE(word);
    CHECK(wing_has_word(words, word));
  }
  for (const char* word : {"", "on", "ones", "T_K", "T22_K", "_R", "x_R42", "96", "512", "97..511", "1e2"}) {
    CAPTURE(word);
    CHECK(wing_has_word(words, word) == (word == std::string_view("97..511")));
  }
  CHECK_FALSE(wing_has_word("", "one"));
}

TEST_CASE("the words of an omitted wing have help that names it") {
  for (const OmittedWing& wing : omitted_wings()) {
    const std::string word(wing.words.substr(0, wing.words.find(' ')));
    CHECK(omitted_wing_help(word).find("`" + std::string(wing.name) + "`") != std::string::npos);
  }
  CHECK(omitted_wing_help("no such word").empty());
}
