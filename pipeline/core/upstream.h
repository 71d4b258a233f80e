#pragma once
// The version of llama.cpp that ggufmill follows, from configs/upstream.yaml when the program was built.

#include <span>
#include <string_view>

namespace ggufmill {

struct UpstreamLibrary {
  std::string_view name;     // as pip installs it: "transformers"
  std::string_view version;  // "4.57.6"
};

// The version of llama.cpp whose bytes ggufmill writes: "b11434".
std::string_view upstream_version();

// Its date: "2026-10-06".
std::string_view upstream_date();

// The Python libraries with which its converters gave the expected outputs. The list lives as long as the program.
std::span<const UpstreamLibrary> upstream_libraries();

}  // namespace ggufmill
