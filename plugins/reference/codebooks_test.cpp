#include "plugins/reference/codebooks.h"

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/shared_data.h"

using namespace ggufmill;
using namespace ggufmill::reference;

namespace {

using Values = std::vector<std::vector<int>>;  // index -> values of the coordinates

template <class Book, class Magnitude>
Values values_of(const Book& book, const Magnitude* magnitudes) {
  Values values;
  for (const auto& point : book) {
    values.emplace_back();
    for (const std::uint8_t level : point) values.back().push_back(magnitudes[level]);
  }
  return values;
}

std::map<std::string, Values> all_books() {
  return {{"IQ1_S", values_of(kIq1Book, kIq1Values)},        {"IQ2_XXS", values_of(kIq2XxsBook, kIq2Magnitudes)},
          {"IQ2_XS", values_of(kIq2XsBook, kIq2Magnitudes)}, {"IQ2_S", values_of(kIq2SBook, kIq2Magnitudes)},
          {"IQ3_S", values_of(kIq3SBook, kIq3SMagnitudes)},  {"IQ3_XXS", values_of(kIq3XxsBook, kIq3XxsMagnitudes)}};
}

// FNV-1a hash of the values as bytes, in order.
std::uint64_t digest(const Values& values) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const auto& point : values)
    for (const int value : point) hash = (hash ^ static_cast<std::uint8_t>(value)) * 0x100000001b3u;
  return hash;
}

// Loads the golden table. Each line has a book, an index and the values.
std::map<std::string, Values> load_books(const std::string& path) {
  std::ifstream file(path);
  std::map<std::string, Values> books;
  std::string line;
  std::getline(file, line);  // field names
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::string book;
    int index = 0;
    fields >> book >> index;
    books[book].emplace_back();
    for (int value; fields >> value;) books[book].back().push_back(value);
  }
  return books;
}

}  // namespace

TEST_CASE("code books expand to the values of the format", "[codebooks]") {
  const std::map<std::string, std::uint64_t> expected = {
      {"IQ1_S", 0x6703ed863501ae2eu}, {"IQ2_XXS", 0xbb4ee025b5ac6e8eu}, {"IQ2_XS", 0xc9b1ee61e79909bdu},
      {"IQ2_S", 0x123edd38a3b62b90u}, {"IQ3_XXS", 0xdfa5dc83d6a155d5u}, {"IQ3_S", 0xfa37020c25b44829u}};
  for (const auto& [name, values] : all_books()) {
    CAPTURE(name);
    CHECK(digest(values) == expected.at(name));
  }
}

TEST_CASE("code books hold what decoding every index gave", "[codebooks]") {
  const auto shared = shared_data();
  if (!shared) GGUFMILL_SKIP("no shared golden data beside the repository");
  const auto golden = load_books(*shared / "golden" / "codebooks.tsv");
  for (const auto& [name, values] : all_books()) {
    CAPTURE(name);
    CHECK(values == golden.at(name));
  }
  CHECK(golden.at("IQ4_NL").at(0) == std::vector<int>(std::begin(kIq4Values), std::end(kIq4Values)));
}

TEST_CASE("a point is found again from its code", "[codebooks]") {
  int wrong = 0;
  for (int code = 0; code < Ternary::kCodes; ++code) wrong += Ternary::code_of(Ternary::point_of(code).data()) != code;
  for (int code = 0; code < Octal::kCodes; ++code) wrong += Octal::code_of(Octal::point_of(code).data()) != code;
  CHECK(wrong == 0);
}
