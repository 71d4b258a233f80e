#include "pipeline/core/text.h"

#include "tests/support/catch.h"

using namespace ggufmill;
using namespace std::string_view_literals;

TEST_CASE("well-formed UTF-8 of every length is accepted") {
  CHECK(is_utf8("a\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"));
  CHECK(is_utf8("a\0b"sv));
}

TEST_CASE("invalid UTF-8 is refused") {
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

TEST_CASE("terminal control sequences are shown as escaped bytes") {
  CHECK(printable("blk.\x1b[31m\x7f\t\n") == "blk.\\x1b[31m\\x7f\\x09\\x0a");
  CHECK(printable("\xc2\x9b"
                  "1m\xc2\xa0") == "\\xc2\\x9b1m\xc2\xa0");  // CSI as a single C1 character
  CHECK(printable("a\xe2\x80\xae"
                  "b\xe2\x81\xa6") ==
        "a\\xe2\\x80\\xae"
        "b\\xe2\\x81\\xa6");  // bidirectional controls
  CHECK(printable("\xd8\x9c\xef\xbb\xbf\xe2\x80\xa8") == "\\xd8\\x9c\\xef\\xbb\\xbf\\xe2\\x80\\xa8");
  CHECK(printable("\xff\xe2\x82") == "\\xff\\xe2\\x82");
}

TEST_CASE("printable text is unchanged") {
  const std::string text = "blk.0 \xc3\xa9 \xe6\xa8\xa1\xe5\x9e\x8b \xf0\x9f\x99\x82 '\\x1b'";
  CHECK(printable(text) == text);
  CHECK(printable("a\tb\nc", "\t\n") == "a\tb\nc");
}

TEST_CASE("did_you_mean suggests only similar words") {
  const std::vector<std::string> words{"quantize", "metadata", "gguf"};
  CHECK(did_you_mean("quantise", words) == "quantize");
  CHECK(did_you_mean("Metdata", words) == "metadata");
  CHECK(did_you_mean("ggfu", words) == "gguf");
  CHECK(did_you_mean("prune", words).empty());
}

TEST_CASE("among equally similar words, did_you_mean prefers the one with the same kinds of characters") {
  CHECK(did_you_mean("Q5_M", {"Q5_0", "Q5_1", "Q5_K"}) == "Q5_K");
  CHECK(did_you_mean("Q5_2", {"Q5_K", "Q5_0", "Q5_1"}) == "Q5_0");
}

TEST_CASE("among equally similar words, did_you_mean prefers a common prefix, and separators hardly count") {
  CHECK(did_you_mean("Q5_K_XL", {"Q3_K_L", "Q5_K_M", "Q5_K_S"}) == "Q5_K_M");
  CHECK(did_you_mean("Q4KM", {"Q4_0", "Q4_K", "Q4_K_M"}) == "Q4_K_M");
  CHECK(did_you_mean("iq4-xs", {"IQ4_NL", "IQ4_XS"}) == "IQ4_XS");
}

TEST_CASE("sizes have decimal and binary units") {
  CHECK(parse_bytes("512MiB").value() == 512ull << 20);
  CHECK(parse_bytes("20G").value() == 20000000000ull);
  CHECK(parse_bytes("1.5GiB").value() == 3ull << 29);
  CHECK(parse_bytes("18446744073709551615").value() == ~0ull);
}

TEST_CASE("invalid sizes are refused") {
  for (const char* text : {"", "abc", "-1", "12 MiB", "1X", "99999999999T", "1e400", "nan"}) {
    INFO(text);
    CHECK_FALSE(parse_bytes(text));
  }
}

TEST_CASE("written sizes parse back to the same value") {
  CHECK(format_bytes(0) == "0");
  CHECK(format_bytes(1001) == "1001");
  CHECK(format_bytes(5'000'000'000) == "5G");
  CHECK(format_bytes(512ull << 20) == "512MiB");
  CHECK(format_bytes(3ull << 29) == "1536MiB");
  for (const std::uint64_t bytes : {1ull, 1ull << 50, ~0ull}) CHECK(parse_bytes(format_bytes(bytes)).value() == bytes);
}

TEST_CASE("a number of things") {
  CHECK(counted(1, "tensor") == "1 tensor");
  CHECK(counted(0, "tensor") == "0 tensors");
}
