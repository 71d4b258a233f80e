// Which tensors belong together in a report.

#include <algorithm>
#include <map>
#include <tuple>

#include "pipeline/report/report.h"

namespace ggufmill {
namespace {

// The end of "blk.12" in "blk.12.attn_q.weight" or "enc.blk.12.ffn_up.weight"; npos when there is no such part.
std::size_t end_of_block(const std::string& tensor) {
  const std::size_t word = tensor.find("blk.");
  if (word == std::string::npos || (word != 0 && tensor[word - 1] != '.')) return std::string::npos;
  const std::size_t digits = word + 4, end = tensor.find_first_not_of("0123456789", digits);
  return end != digits && end != std::string::npos && tensor[end] == '.' ? end : std::string::npos;
}

// Sorts "blk.2" before "blk.10", every family of layers where its first one came, and parts without a number last.
struct LayerPlace {
  bool single;
  std::size_t family;
  std::size_t digits;  // of the number, without zeros in front
  std::string number;
  bool operator<(const LayerPlace& other) const {
    return std::tie(single, family, digits, number) < std::tie(other.single, other.family, other.digits, other.number);
  }
};

LayerPlace place_of(const std::string& layer, std::map<std::string, std::size_t>& families) {
  std::string number = layer.substr(layer.find_last_not_of("0123456789") + 1);
  const std::string family = layer.substr(0, layer.size() - number.size());
  number.erase(0, number.find_first_not_of('0'));
  const std::size_t place = families.emplace(family, families.size()).first->second;
  return {layer.size() == family.size(), place, number.size(), number};
}

bool is_changed(const ReportTensor& tensor) { return tensor.sums.difference > 0 || tensor.sums.not_finite > 0; }

}  // namespace

std::string layer_of(const std::string& tensor) {
  const std::size_t end = end_of_block(tensor);
  return tensor.substr(0, end == std::string::npos ? tensor.find('.') : end);
}

std::vector<LayerSums> layers_of(const ReportOutput& output) {
  std::map<std::string, std::size_t> families;
  std::map<LayerPlace, LayerSums> layers;
  for (const ReportTensor& tensor : output.tensors) {
    if (tensor.state == ErrorState::kNotMeasured) continue;
    const std::string name = layer_of(tensor.name);
    LayerSums& layer = layers[place_of(name, families)];
    layer.layer = name;
    if (is_changed(tensor)) layer.sums.add(tensor.sums);
  }
  std::vector<LayerSums> ordered;
  ordered.reserve(layers.size());
  for (auto& [place, layer] : layers) ordered.push_back(std::move(layer));
  return ordered;
}

ErrorSums total_of(const ReportOutput& output) {
  ErrorSums total;
  for (const ReportTensor& tensor : output.tensors)
    if (is_changed(tensor)) total.add(tensor.sums);
  return total;
}

}  // namespace ggufmill
