#include "stages/huggingface/model_id.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <unordered_set>
#include <utility>

#include "pipeline/core/adapter.h"
#include "pipeline/core/pattern.h"
#include "pipeline/core/text.h"
#include "stages/huggingface/tokenizer/unicode.h"

namespace ggufmill::huggingface {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
std::string in_capitals(std::string word) {
  for (char& c : word) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return word;
}

// Patterns that classify the parts of a name.
class PartPatterns {
 public:
  static const PartPatterns& all() {
    static const PartPatterns patterns;
    return patterns;
  }
  bool is_version(const std::string& part) const { return is(version_, part); }
  bool is_type(const std::string& part) const { return is(type_, part); }
  bool is_size(const std::string& part) const { return is(size_, part); }
  bool is_tuning(const std::string& part) const { return is(tuning_, part); }
  bool is_fixed_word(const std::string& word) const { return is(fixed_word_, word); }

 private:
  PartPatterns() = default;
  static constexpr std::size_t kMaxPartLength = 255;  // longest part that has a meaning

  static Pattern made(std::string_view pattern) { return Pattern::compile(pattern).value(); }
  static bool is(const Pattern& pattern, const std::string& part) {
    if (part.size() > kMaxPartLength) return false;
    const Result<bool> matches = pattern.matches(part);
    return matches && matches.value();
  }

  Pattern version_ = made(R"(\A(?i:(v|iter)?\d+([.]\d+)*)\z)");
  Pattern type_ = made(R"(\A(?i:i?q\d(_\w)*|b?fp?(16|32))\z)");
  Pattern size_ = made(R"(\A(?i:(A|\d+x)?\d+([._]\d+)?[KMBT]\d?|small|mini|medium|large|x?xl)\z)");
  Pattern tuning_ = made(R"(\A(?i:chat|instruct|vision|lora)\z)");
  Pattern fixed_word_ = made(R"(\A(v\d+(\.\d+)*\z|\d))");
};

// A part between two dashes, and its classification.
struct Part {
  std::string text;
  bool version = false, type = false, size = false, finetune = false, base = false;
  bool known() const { return version || type || size || finetune; }
};

// Normalizes a size: "7b1" becomes 7.1B, "590k" 590K, "1_6b" 1.6B.
std::string usual_size(std::string size) {
  std::replace(size.begin(), size.end(), '_', '.');
  if (is_digit(size.back())) {
    const char tenths = size.back(), unit = size[size.size() - 2];
    size.resize(size.size() - 2);
    size += {'.', tenths, unit};
  }
  if (is_digit(size[size.size() - 2])) size.back() = static_cast<char>(std::toupper(size.back()));
  return size;
}

// Returns the number of weights that a size denotes; nullopt for "8x7B", "A3B" and words.
std::optional<double> weights_of(const std::string& size) {
  double number = 0;
  const char* end = size.data() + size.size() - 1;
  const auto [stopped, error] = std::from_chars(size.data(), end, number);
  if (stopped != end || error == std::errc::invalid_argument) return {};
  if (error == std::errc::result_out_of_range) return std::numeric_limits<double>::infinity();
  const std::size_t thousands = std::string_view(" KMBT").find(size.back());
  return number * std::pow(1000.0, static_cast<double>(thousands));
}

// Returns true if a size differs from the actual number of weights by more than 7/8 of that number; it may be a
// context length, for example.
bool is_far(const std::string& size, const WeightCount& count) {
  const auto said = weights_of(size);
  const std::uint64_t weights = count.total;
  if (weights == 0 || !said) return false;
  if (count.is_adapter) return *said < static_cast<double>(weights / 8);
  const std::uint64_t limit = weights - weights / 8 - (weights % 8 != 0 ? 1 : 0);
  return std::abs(*said - static_cast<double>(weights)) > static_cast<double>(limit);
}

void recognize(Part& part, bool is_first, const WeightCount& weights, const PartPatterns& patterns) {
  if (patterns.is_version(part.text)) {
    part.version = true;
  } else if (patterns.is_type(part.text)) {
    part.type = true;
    part.text = in_capitals(part.text);
  } else if (is_first) {
    return;
  } else if (patterns.is_size(part.text)) {
    part.text = usual_size(part.text);
    part.finetune = is_far(part.text, weights);
    part.size = !part.finetune;
    if (part.finetune) part.text.back() = static_cast<char>(std::tolower(part.text.back()));
  } else {
    part.finetune = patterns.is_tuning(part.text);
    if (weights.is_adapter && same_word(part.text, "lora")) part.type = std::exchange(part.finetune, false);
  }
}

bool has_digit(const std::string& text) { return std::any_of(text.begin(), text.end(), is_digit); }
bool begins_with_letter(const std::string& text) { return is_letter(characters(text).front().code); }

// Ignores sizes such as "small" if there is a numeric size.
void drop_words_for_sizes(std::vector<Part>& parts) {
  const bool statistics =
      std::any_of(parts.begin(), parts.end(), [](const Part& part) { return part.size && has_digit(part.text); });
  for (Part& part : parts) part.size = part.size && (!statistics || has_digit(part.text));
}

// The base name is the start of the id: words without another meaning, and versions, except for versions at its end.
void find_base(std::vector<Part>& parts) {
  bool begins = true;
  for (Part& part : parts) {
    begins = begins && (part.version || (!part.known() && begins_with_letter(part.text)));
    part.base = begins;
    if (!part.base && !part.known()) part.finetune = true;
  }
  for (auto part = parts.rbegin(); part != parts.rend() && part->base && part->known(); ++part) part->base = false;
}

std::optional<std::string> joined(const std::vector<Part>& parts, auto wanted) {
  std::string out;
  for (const Part& part : parts)
    if (wanted(part)) out += (out.empty() ? "" : "-") + part.text;
  return out.empty() ? std::nullopt : std::optional(out);
}

// Joins the distinct sizes.
std::optional<std::string> joined_sizes(const std::vector<Part>& parts) {
  std::unordered_set<std::string> seen;
  return joined(parts, [&](const Part& part) { return part.size && seen.insert(part.text).second; });
}

std::vector<Part> parts_of(std::string_view name) {
  std::vector<Part> parts;
  for (std::size_t at = 0; at < name.size();) {
    const std::size_t end = std::min(name.find('-', at), name.size());
    if (end > at) parts.push_back({std::string(name.substr(at, end - at))});
    at = end + 1;
  }
  return parts;
}

// Formats a count with a unit from K to T and at least two digits: "0.60K", "7.1B", "13B".
std::string rounded(double count) {
  struct Unit {
    double above, scale;
    char name;
  };
  constexpr Unit kUnits[] = {{1e12, 1e-12, 'T'}, {1e9, 1e-9, 'B'}, {1e6, 1e-6, 'M'}, {-1, 1e-3, 'K'}};
  const Unit& unit = *std::find_if(kUnits, std::end(kUnits), [&](const Unit& one) { return count > one.above; });
  const double scaled = count * unit.scale, whole = std::nearbyint(scaled);
  const int digits = whole < 1 ? 0 : whole < 10 ? 1 : 2;
  return fmt::format("{:.{}f}{}", scaled, 2 - digits, unit.name);
}

}  // namespace

WeightCount count_weights(const std::vector<Tensor>& tensors) {
  WeightCount count;
  std::uint64_t experts = 0, of_experts = 0, columns = 0;
  for (const Tensor& tensor : tensors) {
    std::uint64_t weights = tensor.shape().elements();
    if (tensor.name.ends_with(kLoraA)) {
      columns = tensor.shape().columns();
      continue;
    }
    if (tensor.name.ends_with(kLoraB)) {
      count.is_adapter = true;
      weights = tensor.shape().rows() * columns;
    }
    count.total += weights;
    if (tensor.name.find("_exps.") == std::string::npos || tensor.shape().rank < 3) {
      count.shared += weights;
      continue;
    }
    const bool bias = tensor.name.find(".bias") != std::string::npos;
    const std::uint64_t here = std::max<std::uint64_t>(1, tensor.shape().dims[bias ? 1 : 2]);
    count.expert += weights / here;
    experts += here;
    ++of_experts;
  }
  count.experts = of_experts == 0 ? 0 : experts / of_experts;
  return count;
}

std::string size_label(const WeightCount& count) {
  if (count.experts == 0) return rounded(static_cast<double>(count.total));
  return fmt::format("{}x{}", count.experts, rounded(static_cast<double>(count.shared + count.expert)));
}

ModelId read_model_id(std::string_view id, const WeightCount& weights) {
  ModelId model;
  model.name = id;
  if (id.find(' ') != std::string_view::npos) return model;
  if (const std::size_t slash = id.find('/'); slash != std::string_view::npos) {
    if (id[0] != '.') model.organization = id.substr(0, slash);  // otherwise a path: ./models
    model.name = id.substr(slash + 1);
  }
  std::vector<Part> parts = parts_of(*model.name);
  for (Part& part : parts) recognize(part, &part == &parts.front(), weights, PartPatterns::all());
  drop_words_for_sizes(parts);
  find_base(parts);
  model.size_label = joined_sizes(parts);
  model.finetune = joined(parts, [](const Part& part) { return part.finetune; });
  model.version = joined(parts, [](const Part& part) { return part.version && !part.base; });
  if (model.size_label || model.finetune || model.version)  // otherwise the end of the name is unknown
    model.basename = joined(parts, [](const Part& part) { return part.base; });
  return model;
}

std::string model_title(std::string_view name) {
  std::string title, word;
  const auto put = [&] {
    if (word.empty()) return;
    title += title.empty() ? "" : " ";
    title += is_lower_case(word) && !PartPatterns::all().is_fixed_word(word) ? title_case(word) : word;
    word.clear();
  };
  for (const Character& character : characters(name)) {
    if (character.code == '-' || is_space(character.code))
      put();
    else
      word += name.substr(character.begin, character.bytes);
  }
  put();
  return title;
}

}  // namespace ggufmill::huggingface
