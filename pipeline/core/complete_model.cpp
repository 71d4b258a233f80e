#include "pipeline/core/complete_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "pipeline/core/expected_tensors.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

using Number = ModelNumbers::Number;

// Returns a name with N for each number between dots, and for each {expression}: "blk.N.attn_q.weight".
std::string without_numbers(std::string_view name) {
  std::string result;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    const bool is_number =
        part.starts_with('{') || (!part.empty() && part.find_first_not_of("0123456789") == part.npos);
    if (begin > 0) result += '.';
    result += is_number ? "N" : part;
    begin = end + 1;
  }
  return result;
}

class Finder {
 public:
  Finder(const Model& model, const std::string& architecture)
      : model_(model), expected_(expected_tensors(architecture)), numbers_(model, architecture, expected_) {
    for (const Tensor& tensor : model.tensors) {
      constexpr std::string_view kLayer = "blk.";
      for (std::size_t dot = tensor.name.find('.'); dot != tensor.name.npos; dot = tensor.name.find('.', dot + 1))
        groups_.insert(tensor.name.substr(0, dot + 1));
      if (tensor.name.starts_with(kLayer) && tensor.name.ends_with(".bias"))
        layers_with_biases_.insert(tensor.name.substr(0, tensor.name.find('.', kLayer.size()) + 1));
    }
  }

  ModelHoles run() {
    const Number layers = numbers_.value("n_layer_all", 0);
    if (layers && *layers >= 0) holes_.layers = static_cast<std::uint64_t>(*layers);
    bool has_layers = false;
    for (const ExpectedTensor& line : expected_.lines) {
      if (line.layers.empty()) {
        check(line, 0);
        continue;
      }
      const std::size_t dots = line.layers.find("..");
      const Number begin = numbers_.value(line.layers.substr(0, dots), 0),
                   end = numbers_.value(line.layers.substr(dots + 2), 0);
      if (!begin || !end || *begin < 0 || *begin > kMaxListedLayers) continue;
      has_layers = true;
      check_layers(line, static_cast<std::uint64_t>(*begin),
                   static_cast<std::uint64_t>(std::clamp(*end, *begin, kMaxListedLayers)));
    }
    holes_.is_known = has_layers;
    if (has_layers)
      find_unknown();
    else
      compare_layers();
    return std::move(holes_);
  }

 private:
  // llama.cpp loads at most 512; enough to say that most of them are missing.
  static constexpr std::int64_t kMaxListedLayers = 2048;

  // Returns true if the line applies to the layer and the model has its tensor; nullopt: it does not apply.
  std::optional<bool> check(const ExpectedTensor& line, std::uint64_t layer) {
    const Number when = line.when.empty() ? Number(1) : numbers_.value(line.when, layer);
    if (!when || *when == 0) return {};
    const Tensor* const tensor = numbers_.find(line.tensor, layer);
    if (tensor) {
      check_shape(*tensor, line.shape, layer);
      return true;
    }
    const Number optional = line.presence == "required" ? Number(0)
                            : line.presence.starts_with(kOptionalIf)
                                ? numbers_.value(line.presence.substr(kOptionalIf.size()), layer)
                                : Number(1);
    if (line.presence == "expected") add(holes_.doubtful, line.tensor, layer);
    if (optional && *optional == 0) add(holes_.missing, line.tensor, layer);
    return optional == Number(1) ? std::optional(false) : std::nullopt;
  }

  void add(std::vector<std::string>& into, std::string_view tensor, std::uint64_t layer) {
    std::string name = numbers_.full_name(tensor, layer).value_or("");
    if (!name.empty() && added_.emplace(&into, name).second) into.push_back(std::move(name));
  }

  void check_layers(const ExpectedTensor& line, std::uint64_t begin, std::uint64_t end) {
    std::vector<std::uint64_t> with, without;
    const std::size_t first_wrong = holes_.misshapen.size();
    for (std::uint64_t layer = begin; layer < end; ++layer) {
      const auto present = check(line, layer);
      if (present) (*present ? with : without).push_back(layer);
    }
    compare_shapes(line, with, first_wrong);
    // A bias is used in all layers or in none; other optional tensors can belong to few layers.
    const bool is_bias = line.tensor.ends_with(".bias"), is_norm = line.tensor.find("norm") != line.tensor.npos;
    if ((line.presence != "optional" && line.presence != "expected") || with.empty() ||
        !(is_bias || (is_norm && with.size() >= without.size())))
      return;
    const std::string weight = std::string(line.tensor.substr(0, line.tensor.size() - 4)) + "weight";
    for (const std::uint64_t layer : without) {
      if (is_bias ? !numbers_.find(weight, layer) : !has_group(line.tensor, layer)) continue;
      const bool is_certain = !is_bias || has_biases(layer);
      std::erase(holes_.doubtful, numbers_.full_name(line.tensor, layer).value_or(""));
      add(is_certain ? holes_.missing : holes_.doubtful, line.tensor, layer);
    }
  }

  // Returns true if the layer has a tensor of the same group: "blk.{i}.indexer." of "blk.{i}.indexer.k_norm.weight".
  // Layers may share a group, and then only one has its tensors.
  bool has_group(std::string_view tensor, std::uint64_t layer) {
    return groups_.contains(group_of(numbers_.full_name(tensor, layer).value_or("")));
  }

  bool has_biases(std::uint64_t layer) const { return layers_with_biases_.contains(fmt::format("blk.{}.", layer)); }

  // Returns the name up to its last word but one: "blk.3.indexer." of "blk.3.indexer.k_norm.weight".
  static std::string group_of(const std::string& name) {
    const std::size_t last = name.rfind('.'),
                      dot = last == name.npos || last == 0 ? name.npos : name.rfind('.', last - 1);
    return name.substr(0, dot == name.npos ? 0 : dot + 1);
  }

  // A shape that most layers do not have is wrong, whatever the metadata says.
  void compare_shapes(const ExpectedTensor& line, const std::vector<std::uint64_t>& layers, std::size_t first_wrong) {
    if (holes_.misshapen.size() == first_wrong) return;
    std::map<std::array<std::uint64_t, 4>, std::size_t> counts;
    for (const std::uint64_t layer : layers) ++counts[numbers_.find(line.tensor, layer)->shape().dims];
    for (std::size_t i = first_wrong; i < holes_.misshapen.size(); ++i) {
      WrongShape& each = holes_.misshapen[i];
      if (expected_by_numbers_[each.numbers].size() == 1 && 2 * counts[each.shape.dims] <= layers.size())
        each.is_certain = true;
    }
  }

  void check_shape(const Tensor& tensor, std::string_view expected, std::uint64_t layer) {
    if (expected == "?") return;
    const bool is_odd = expected.starts_with('~');
    const Shape shape = without_trailing_ones(tensor.shape());
    if (wrong_.contains(tensor.name)) return;
    const std::vector<std::string_view> terms = sizes_of(expected);
    std::vector<Number> sizes;
    for (const std::string_view term : terms) sizes.push_back(numbers_.value(term, layer));
    const bool is_total = terms.size() == 1 && expected.find(" * ") != std::string_view::npos && shape.rank > 1;
    if (is_total) {
      if (!sizes[0] || static_cast<std::uint64_t>(*sizes[0]) == shape.elements()) return;
      wrong(tensor, fmt::format("a total of {}", *sizes[0]), terms);
      holes_.misshapen.back().is_odd = is_odd;
      holes_.misshapen.back().is_certain = shape.elements() == 0;
      return;
    }
    bool fits = sizes.size() <= 4;
    std::vector<std::string> texts;
    for (std::size_t d = 0; d < 4; ++d) {
      const std::int64_t own = static_cast<std::int64_t>(shape.dims[d]);
      const Number size = d < sizes.size() ? sizes[d] : Number(1);
      // Negative or absurd sizes come from a wrong key, which the shape cannot decide.
      if (size && *size > 0 && *size != own) fits = false;
      if (d < sizes.size()) texts.push_back(size ? std::to_string(*size) : "?");
    }
    while (texts.size() > 1 && texts.back() == "1") texts.pop_back();
    if (fits) return;
    wrong(tensor, fmt::format("{}", fmt::join(texts, " x ")), terms);
    holes_.misshapen.back().is_odd = is_odd;
    std::array<std::uint64_t, 4> own = shape.dims, wanted{1, 1, 1, 1};
    for (std::size_t d = 0; d < std::min<std::size_t>(sizes.size(), 4); ++d)
      wanted[d] = static_cast<std::uint64_t>(sizes[d].value_or(0));
    std::ranges::sort(own);
    std::ranges::sort(wanted);
    holes_.misshapen.back().is_certain = shape.elements() == 0 || (shape.rank > 1 && own == wanted);
  }

  void wrong(const Tensor& tensor, std::string expected, const std::vector<std::string_view>& terms) {
    std::string numbers = fmt::format("{}", fmt::join(terms, " x "));
    wrong_.insert(tensor.name);
    expected_by_numbers_[numbers].insert(expected);
    holes_.misshapen.push_back({tensor.name, false, false, tensor.shape(), std::move(expected), std::move(numbers)});
  }

  // A bias without a line is unknown. Other tensors may be missing from the table because its generator does not
  // understand their form of declaration.
  void find_unknown() {
    std::unordered_set<std::string> known;
    for (const ExpectedTensor& line : expected_.lines) known.insert(without_numbers(line.tensor));
    for (const Tensor& tensor : model_.tensors) {
      if (tensor.name.ends_with(".bias") && !known.contains(without_numbers(tensor.name)))
        holes_.unknown.push_back(tensor.name);
    }
  }

  // Without a line for the layers: a layer whose kinds of tensors are all in most other layers, but that is missing one
  // of theirs, has a hole. A layer of another kind has tensors that those do not have.
  void compare_layers() {
    std::map<std::string, std::map<std::uint64_t, std::set<std::string>>> stacks;  // by prefix, layer: endings
    for (const Tensor& tensor : model_.tensors) {
      const std::size_t at = tensor.name.find("blk.");
      if (at == std::string::npos || (at > 0 && tensor.name[at - 1] != '.')) continue;
      const std::size_t dot = tensor.name.find('.', at + 4);
      if (dot == std::string::npos) continue;
      std::uint64_t layer = 0;
      const auto [stop, error] = std::from_chars(tensor.name.data() + at + 4, tensor.name.data() + dot, layer);
      if (error != std::errc() || stop != tensor.name.data() + dot) continue;
      // Other vectors, such as sinks, can belong to some layers.
      const std::string ending = tensor.name.substr(dot);
      if (tensor.shape().rank > 1 || ending.ends_with(".bias") || ending.find("norm") != ending.npos ||
          ending.find(".ln") != ending.npos)
        stacks[tensor.name.substr(0, at + 4)][layer].insert(ending);
    }
    for (const auto& [prefix, layers] : stacks) {
      std::map<std::set<std::string>, std::size_t> kinds;
      for (const auto& [layer, endings] : layers) ++kinds[endings];
      const auto most = std::ranges::max_element(kinds, {}, [](const auto& each) { return each.second; });
      if (2 * most->second <= layers.size()) continue;
      for (const auto& [layer, endings] : layers) {
        if (!std::ranges::includes(most->first, endings)) continue;
        for (const std::string& ending : most->first)
          if (!endings.contains(ending)) holes_.missing.push_back(fmt::format("{}{}{}", prefix, layer, ending));
      }
    }
  }

  const Model& model_;
  ExpectedTensors expected_;
  ModelNumbers numbers_;
  ModelHoles holes_;
  std::set<std::pair<const void*, std::string>> added_;
  std::unordered_set<std::string> groups_;              // beginnings of names, up to any dot
  std::unordered_set<std::string> layers_with_biases_;  // "blk.3."
  std::unordered_set<std::string> wrong_;               // names in holes_.misshapen
  std::map<std::string, std::set<std::string>>
      expected_by_numbers_;  // shapes that were expected, by WrongShape::numbers
};

// "3", "3 and 5", "28 to 31".
std::string ranges_of(const std::vector<std::uint64_t>& sorted) {
  std::vector<std::string> ranges;
  for (std::size_t i = 0; i < sorted.size();) {
    std::size_t end = i + 1;
    while (end < sorted.size() && sorted[end] == sorted[end - 1] + 1) ++end;
    if (end - i == 2) end = i + 1;
    ranges.push_back(end - i == 1 ? std::to_string(sorted[i]) : fmt::format("{} to {}", sorted[i], sorted[end - 1]));
    i = end;
  }
  if (ranges.size() == 2) return ranges[0] + " and " + ranges[1];
  return list_some(ranges);
}

}  // namespace

ModelHoles find_holes(const Model& model) {
  const MetadataValue* const name = model.metadata.find("general.architecture");
  const auto architecture = name ? as_string(*name) : std::nullopt;
  if (!architecture) return {};
  return Finder(model, std::string(*architecture)).run();
}

std::string describe_missing(const std::vector<MissingTensor>& missing, std::uint64_t present,
                             const std::vector<std::uint64_t>& layers_present, std::string_view says_layers) {
  std::set<std::uint64_t> layers;
  std::vector<std::string> names;  // of tensors in layers of which others are there
  for (const MissingTensor& each : missing)
    if (each.layer && !std::ranges::binary_search(layers_present, *each.layer))
      layers.insert(*each.layer);
    else
      names.push_back(quoted_name(each.name));
  if (missing.size() == 1 && layers.empty()) return fmt::format("tensor {} is missing", names[0]);
  std::string text = fmt::format("{} of {} tensors are missing: ", missing.size(), present + missing.size());
  if (!layers.empty()) {
    text +=
        fmt::format("all of {} {}", layers.size() == 1 ? "layer" : "layers", ranges_of({layers.begin(), layers.end()}));
    if (!says_layers.empty()) text += fmt::format(" ({}, the files hold {})", says_layers, layers_present.size());
  }
  if (names.empty()) return text;
  if (!layers.empty()) text += "; ";
  std::set<std::uint64_t> incomplete;
  for (const MissingTensor& each : missing)
    if (each.layer && !layers.contains(*each.layer)) incomplete.insert(*each.layer);
  text += list_some(names);
  if (incomplete.size() > 1)
    text += fmt::format(" (layers {} are incomplete)", ranges_of({incomplete.begin(), incomplete.end()}));
  return text;
}

std::string describe_unknown(const std::vector<std::string>& unknown, std::size_t tensors) {
  std::vector<std::string> names;
  for (const std::string& name : unknown) names.push_back(quoted_name(name));
  return fmt::format("{} of {} tensors {} unknown to it: {}", unknown.size(), tensors,
                     unknown.size() == 1 ? "is" : "are", list_some(names));
}

std::string describe(const WrongShape& wrong) {
  return fmt::format("{} {}, but {} is expected", wrong.shape.elements() == 0 ? "is empty:" : "has the shape",
                     describe(wrong.shape), wrong.expected);
}

}  // namespace ggufmill
