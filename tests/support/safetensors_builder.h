#pragma once
// safetensors files for tests, right and wrong.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ggufmill {

struct SafetensorsTensor {
  std::string name;
  std::string dtype;                // as it stands in the header
  std::vector<std::uint64_t> dims;  // the slowest first
  std::string data;
};

// A file with the data in this order and the header in this one, too; `metadata`: a JSON object, or nothing.
std::string safetensors_bytes(const std::vector<SafetensorsTensor>& tensors, std::string_view metadata = {});
// The length of `header`, it, and `data`.
std::string safetensors_file(std::string_view header, std::string_view data = {});
// model.safetensors.index.json of tensors and the files that they are in.
std::string safetensors_index(const std::vector<std::pair<std::string, std::string>>& files);

}  // namespace ggufmill
