#include "pipeline/core/text.h"

#include "tests/support/catch.h"

using namespace ggufmill;
using namespace std::string_view_literals;

TEST_CASE("well-formed UTF-8 of every length is accepted") {
  CHECK(is_utf8("a\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"));
  CHECK(is_utf8("a\0b"sv));
}

TEST_CASE("what is not UTF-8 is refused") {
  const auto text =
      GENERATE("\x80"sv, "\xc0\x80"sv, "\xc1\xbf"sv, "\xe0\x9f\xbf"sv, "\xed\xa0\x80"sv, "\xf0\x8f\xbf\xbf"sv,
               "\xf4\x90\x80\x80"sv, "\xf5\x80\x80\x80"sv, "\xff"sv, "\xe2\x82"sv, "\xc3("sv);
  CAPTURE(text);
  CHECK_FALSE(is_utf8(text));
}

TEST_CASE("names are shown on one line") {
  CHECK(quoted_name("blk.0\n\0\xff"
                    "\xc3\xa9"sv) == "'blk.0\\x0a\\x00\\xff\xc3\xa9'");
}

TEST_CASE("long names are cut between characters") {
  CHECK(quoted_name("abc\xc3\xa9\xc3\xa9", 5) == "'abc\xc3\xa9'...");
}
