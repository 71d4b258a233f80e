// JSON according to the standard, and as Python reads the files of a checkpoint.

#include "pipeline/core/json.h"

#include <fmt/format.h>

#include <boost/json/serialize.hpp>
#include <cmath>

#include "tests/support/catch.h"

using namespace ggufmill;
namespace json = boost::json;

namespace {

std::string of(const Result<json::value>& document) {
  if (document) return json::serialize(document.value());
  CHECK(document.error().code == ExitCode::kBadInput);
  CHECK(document.error().where == "f.json");
  return fmt::format("{}; {}", document.error().what, document.error().detail);
}

std::string strict(std::string_view text) { return of(parse_json("f.json", text)); }
std::string python(std::string_view text) { return of(parse_checkpoint_json("f.json", text)); }

double number(std::string_view text) { return parse_checkpoint_json("f.json", text).value().get_double(); }

std::string text_of(std::string_view text) {
  return std::string(json_text(parse_checkpoint_json("f.json", text).value()).value());
}

}  // namespace

TEST_CASE("values of a document keep their kind, order, and position") {
  CHECK(strict(R"( {"a" : [ 1, -2.5, true, false, null, "x" ] , "b":{}, "c":[] } )") ==
        R"({"a":[1,-2.5E0,true,false,null,"x"],"b":{},"c":[]})");
  CHECK(strict("7") == "7");
  CHECK(strict(R"("\"\\\/\b\f\n\r\t\u0041\u00e9\u20AC\ud83d\ude00")") ==
        "\"\\\"\\\\/\\b\\f\\n\\r\\tA\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
}

TEST_CASE("numbers are 64-bit integers if they fit, else the nearest double") {
  CHECK(parse_json("", "9223372036854775807").value().is_int64());
  CHECK(parse_json("", "-9223372036854775808").value().is_int64());
  CHECK(parse_json("", "18446744073709551615").value().is_uint64());
  CHECK(number("18446744073709551616") == 18446744073709551616.0);
  CHECK(number("1000000000000000019884624838656") == 1e30);
  CHECK(number("0.1e1") == 1.0);
  CHECK(number("5e-324") == 5e-324);
  CHECK(number("1e400") == INFINITY);
  CHECK(number("-0.001e999999999999999999999") == -INFINITY);
  CHECK(number("1e-400") == 0.0);
  CHECK(number("0.0000e999") == 0.0);
  CHECK(parse_json("", "-0").value() == json::value(0));
}

TEST_CASE("of two members with the same name, the later one replaces the first in place") {
  CHECK(strict(R"({"a":1,"b":2,"a":3})") == R"({"a":3,"b":2})");
}

TEST_CASE("Python's numbers that are missing from JSON are accepted only in checkpoints") {
  CHECK(number("Infinity") == INFINITY);
  CHECK(number("-Infinity") == -INFINITY);
  CHECK(std::isnan(number("NaN")));
  CHECK_FALSE(std::signbit(number("NaN")));
  CHECK(parse_checkpoint_json("", R"({"time_step_limit":[0.0,Infinity]})").value().at("time_step_limit").at(1) ==
        INFINITY);
  CHECK(strict("[NaN]") == "not valid JSON: unexpected 'N'; reading stopped at byte 0x1");
  CHECK(strict("[Infinity]") == "not valid JSON: unexpected 'I'; reading stopped at byte 0x1");
  CHECK(strict("[-Infinity]") == "not valid JSON: unexpected 'I'; reading stopped at byte 0x2");
  for (const char* wrong : {"nan", "inf", "+Infinity", "-NaN", "infinity", "Inf", "NaNs"})
    CHECK(python(wrong).starts_with("not valid JSON: "));
}

TEST_CASE("half of a surrogate pair is accepted only in checkpoints, as bytes that are not UTF-8") {
  CHECK(text_of(R"("a\ud800b")") ==
        "a\xed\xa0\x80"
        "b");
  CHECK(text_of(R"("\udfff")") == "\xed\xbf\xbf");
  CHECK(text_of(R"("\ud83d\ud83d\ude00")") == "\xed\xa0\xbd\xf0\x9f\x98\x80");
  CHECK(text_of(R"("\ud800\n")") == "\xed\xa0\x80\n");
  CHECK(text_of(R"("\ud800\u0041")") ==
        "\xed\xa0\x80"
        "A");
  CHECK(strict(R"(["\ud800"])") ==
        "not valid JSON: \\ud800 is half of a surrogate pair whose other half is missing; reading stopped at byte 0x8");
  CHECK(python("\"\xed\xa0\x80\"") == "not valid JSON: not UTF-8; reading stopped at byte 0x1");
}

TEST_CASE("invalid JSON is an error with reason and position") {
  CHECK(python("") == "not valid JSON: unexpected end of file; reading stopped at byte 0x0");
  CHECK(python("[1,") == "not valid JSON: unexpected end of file; reading stopped at byte 0x3");
  CHECK(python("\"a") == "not valid JSON: unexpected end of file; reading stopped at byte 0x2");
  CHECK(python("[1,]") == "not valid JSON: unexpected ']'; reading stopped at byte 0x3");
  CHECK(python("{\"a\":1,}") == "not valid JSON: unexpected '}'; reading stopped at byte 0x7");
  CHECK(python("{a:1}") == "not valid JSON: unexpected 'a'; reading stopped at byte 0x1");
  CHECK(python("{\"a\" 1}") == "not valid JSON: unexpected '1'; reading stopped at byte 0x5");
  CHECK(python("[1 2]") == "not valid JSON: unexpected '2'; reading stopped at byte 0x3");
  CHECK(python("01") == "not valid JSON: unexpected data after the end of the document; reading stopped at byte 0x1");
  CHECK(python("1.") == "not valid JSON: unexpected end of file; reading stopped at byte 0x2");
  CHECK(python("[.5]") == "not valid JSON: unexpected '.'; reading stopped at byte 0x1");
  CHECK(python("\"\\x\"") == "not valid JSON: invalid escape; reading stopped at byte 0x2");
  CHECK(python("\"\\u00g0\"") == "not valid JSON: \\u without four hexadecimal digits; reading stopped at byte 0x5");
  CHECK(python("\"a\nb\"") == "not valid JSON: a control character in a string; reading stopped at byte 0x2");
  CHECK(python("\"a\xff\"") == "not valid JSON: not UTF-8; reading stopped at byte 0x2");
  CHECK(python("{}{}") == "not valid JSON: unexpected data after the end of the document; reading stopped at byte 0x2");
  CHECK(python(std::string(65, '[')) ==
        "not valid JSON: nested more than 64 levels deep; reading stopped at byte 0x40");
}

TEST_CASE("a byte order mark is an error, as in Python") {
  CHECK(python("\xef\xbb\xbf{}") == "not valid JSON: it begins with a byte order mark; reading stopped at byte 0x0");
  CHECK(parse_checkpoint_json("", "\xef\xbb\xbf{}").error().help == "save it as UTF-8 without a byte order mark");
  CHECK(python("\xff\xfe{\0") ==
        "not valid JSON: not UTF-8: it begins with the byte order mark of UTF-16; reading stopped at byte 0x0");
}
