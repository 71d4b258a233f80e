#include "pipeline/core/upstream.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/support/catch.h"

using namespace ggufmill;

TEST_CASE("the version of llama.cpp is that of configs/upstream.yaml") {
  std::ifstream stream("configs/upstream.yaml");
  const std::string file = "\n" + std::string(std::istreambuf_iterator<char>(stream), {});
  CHECK(file.find("\nversion: " + std::string(upstream_version()) + "\n") != std::string::npos);
  CHECK(file.find("\ndate: " + std::string(upstream_date()) + "\n") != std::string::npos);
}

TEST_CASE("the libraries that gave the golden tables are known") {
  const auto libraries = upstream_libraries();
  CHECK(std::ranges::any_of(libraries, [](const UpstreamLibrary& each) { return each.name == "transformers"; }));
  CHECK(std::ranges::none_of(libraries, [](const UpstreamLibrary& each) { return each.version.empty(); }));
}
