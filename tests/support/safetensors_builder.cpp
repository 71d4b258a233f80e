#include "tests/support/safetensors_builder.h"

#include <fmt/format.h>

namespace ggufmill {

std::string safetensors_bytes(const std::vector<SafetensorsTensor>& tensors, std::string_view metadata) {
  std::string header = metadata.empty() ? "{" : fmt::format(R"({{"__metadata__":{})", metadata), data;
  for (const SafetensorsTensor& tensor : tensors) {
    header += fmt::format(R"({}"{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", header == "{" ? "" : ",",
                          tensor.name, tensor.dtype, fmt::join(tensor.dims, ","), data.size(),
                          data.size() + tensor.data.size());
    data += tensor.data;
  }
  return safetensors_file(header + "}", data);
}

std::string safetensors_file(std::string_view header, std::string_view data) {
  std::string file;
  for (std::size_t i = 0; i < 8; ++i) file += static_cast<char>(header.size() >> (8 * i));
  file += header;
  return file.append(data);
}

std::string safetensors_index(const std::vector<std::pair<std::string, std::string>>& files) {
  std::string map;
  for (const auto& [tensor, file] : files) map += fmt::format(R"({}"{}":"{}")", map.empty() ? "" : ",", tensor, file);
  return fmt::format(R"({{"metadata":{{"total_size":1}},"weight_map":{{{}}}}})", map);
}

}  // namespace ggufmill
