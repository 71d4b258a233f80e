#pragma once
// Builds valid and invalid safetensors files for tests.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ggufmill {

struct SafetensorsTensor {
  std::string name;
  std::string dtype;                // as stored in the header
  std::vector<std::uint64_t> dims;  // slowest first
  std::string data;
};

// Returns a file with the data and the header in the given order. `metadata` is a JSON object or empty.
std::string safetensors_bytes(const std::vector<SafetensorsTensor>& tensors, std::string_view metadata = {});
// Returns the length of `header`, the header and `data`.
std::string safetensors_file(std::string_view header, std::string_view data = {});
// Returns a model.safetensors.index.json with pairs of a tensor and its file.
std::string safetensors_index(const std::vector<std::pair<std::string, std::string>>& files);

}  // namespace ggufmill
