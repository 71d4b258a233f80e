// The types of the scalars follow PyYAML, the library that convert_hf_to_gguf.py (llama.cpp) uses.

#include "stages/huggingface/general.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <charconv>

#include "pipeline/config/front_matter.h"
#include "pipeline/core/pattern.h"
#include "pipeline/io/json_file.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/source_path.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;
constexpr std::uint64_t kMaxRead = 2 << 20;  // the YAML itself is limited to 1 MiB, which its reader checks

// Assigns types to plain scalars according to YAML 1.1 (PyYAML's resolver). Base-60 numbers and dates remain text.
class ScalarTypes {
 public:
  json::value typed(const std::string& scalar) const {
    if (scalar.size() > kMaxNumberLength) return text(scalar);
    if (is(null_, scalar)) return nullptr;
    if (is(true_, scalar)) return true;
    if (is(false_, scalar)) return false;
    if (is(integer_, scalar)) return integer(scalar);
    if (is(real_, scalar)) return real(scalar);
    return text(scalar);
  }

 private:
  static constexpr std::size_t kMaxNumberLength = 100;

  static Pattern made(std::string_view pattern) { return Pattern::compile(pattern).value(); }
  static bool is(const Pattern& pattern, const std::string& scalar) {
    const Result<bool> matches = pattern.matches(scalar);
    return matches && matches.value();
  }
  static json::value text(const std::string& scalar) { return json::string(scalar); }

  static json::value integer(const std::string& scalar) {
    std::string digits = scalar;
    std::erase(digits, '_');
    const bool negative = digits[0] == '-';
    digits.erase(0, digits.find_first_not_of("+-"));
    int base = 10;
    if (digits.starts_with("0x")) base = 16;
    if (digits.starts_with("0b")) base = 2;
    if (base != 10)
      digits.erase(0, 2);
    else if (digits[0] == '0')
      base = 8;
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number, base);
    if (error != std::errc() || end != digits.data() + digits.size()) return text(scalar);  // does not fit in 64 bits
    return negative ? -number : number;
  }

  static json::value real(const std::string& scalar) {
    std::string digits = scalar;
    std::erase(digits, '_');
    double number = 0;
    const char* begin = digits.data() + (digits[0] == '+' ? 1 : 0);
    const auto [end, error] = std::from_chars(begin, digits.data() + digits.size(), number);
    if (error != std::errc() || end != digits.data() + digits.size()) return text(scalar);
    return number;
  }

  Pattern null_ = made(R"(\A(~|null|Null|NULL|)\z)");
  Pattern true_ = made(R"(\A(yes|Yes|YES|true|True|TRUE|on|On|ON)\z)");
  Pattern false_ = made(R"(\A(no|No|NO|false|False|FALSE|off|Off|OFF)\z)");
  Pattern integer_ = made(R"(\A[-+]?(0b[01_]+|0[0-7_]*|[1-9][0-9_]*|0x[0-9a-fA-F_]+)\z)");
  Pattern real_ = made(R"(\A([-+]?[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)([eE][-+][0-9]+)?\z)");
};

json::value value_of(const ConfigNode& node, const ScalarTypes& types) {
  switch (node.kind) {
    case ConfigNode::Kind::kNull:
      return nullptr;
    case ConfigNode::Kind::kScalar:
      return node.quoted ? json::value(json::string(node.scalar)) : types.typed(node.scalar);
    case ConfigNode::Kind::kList: {
      json::array list;
      for (const ConfigNode& item : node.items) list.push_back(value_of(item, types));
      return list;
    }
    case ConfigNode::Kind::kMap: {
      json::object map;
      for (const ConfigNode::Entry& entry : node.entries) map[entry.key] = value_of(entry.value, types);
      return map;
    }
  }
  return nullptr;
}

}  // namespace

Result<json::object> read_model_card(const fs::path& folder, std::vector<std::string>& warnings) {
  const fs::path path = folder / "README.md";
  if (!is_file(path)) return json::object();
  BOOST_OUTCOME_TRY(const auto file, open_source(path));
  std::string readme(std::min(file->bytes(), kMaxRead), '\0');
  BOOST_OUTCOME_TRY(file->read(0, std::as_writable_bytes(std::span(readme))));
  ConfigTexts texts;
  BOOST_OUTCOME_TRY(const ConfigNode root, read_front_matter(readme, path.string(), texts));
  if (root.is_map()) return value_of(root, ScalarTypes()).as_object();
  if (root.kind != ConfigNode::Kind::kNull)
    warnings.push_back(fmt::format("{}: the text between the --- lines is not a map; ignored", path.string()));
  return json::object();
}

}  // namespace ggufmill::huggingface
