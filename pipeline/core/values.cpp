#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>

#include "pipeline/core/fields.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

constexpr Unit kUnits[] = {
    {"", 1},
    {"B", 1},
    {"K", 1000},
    {"KB", 1000},
    {"KiB", 1ull << 10},
    {"M", 1000000},
    {"MB", 1000000},
    {"MiB", 1ull << 20},
    {"G", 1000000000},
    {"GB", 1000000000},
    {"GiB", 1ull << 30},
    {"T", 1000000000000},
    {"TB", 1000000000000},
    {"TiB", 1ull << 40},
};

constexpr const char* kSizeHelp = "write a number and a unit: 512MiB, 20G, 1.5GiB";

Error not_a(const ConfigNode& node, std::string_view kind, std::string help = {}) {
  return error_at(node, fmt::format("{} is not {}", quoted_name(node.scalar), kind), std::move(help));
}

template <class T>
Result<T> parse_whole(const ConfigNode& node, std::string_view kind) {
  T value{};
  const char* end = node.scalar.data() + node.scalar.size();
  const auto [stop, error] = std::from_chars(node.scalar.data(), end, value);
  if (node.is_scalar() && stop == end && error == std::errc::result_out_of_range)
    return error_at(node, fmt::format("{} does not fit into 64 bits", quoted_name(node.scalar)));
  if (!node.is_scalar() || error != std::errc() || stop != end) return not_a(node, kind);
  return value;
}

// What YAML 1.1 took for a boolean, and is a plain text in YAML 1.2.
std::string bool_help(std::string word) {
  for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (word == "yes" || word == "on" || word == "y" || word == "true") return "write true";
  if (word == "no" || word == "off" || word == "n" || word == "false") return "write false";
  return {};
}

}  // namespace

Result<bool> to_bool(const ConfigNode& node) {
  if (node.is_scalar() && node.scalar == "true") return true;
  if (node.is_scalar() && node.scalar == "false") return false;
  return not_a(node, "true or false", bool_help(node.scalar));
}

Result<std::int64_t> to_integer(const ConfigNode& node) { return parse_whole<std::int64_t>(node, "a whole number"); }

Result<double> to_number(const ConfigNode& node) {
  Result<double> value = parse_whole<double>(node, "a number");
  if (value && !std::isfinite(value.value())) return not_a(node, "a number");
  return value;
}

Result<std::uint64_t> parse_bytes(std::string_view text) {
  double number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  const std::string_view unit(stop, static_cast<std::size_t>(text.data() + text.size() - stop));
  for (const Unit& known : kUnits) {
    if (error != std::errc() || known.name != unit || text[0] == '-' || !std::isfinite(number)) continue;
    std::uint64_t whole = 0;  // exact where no fraction is written
    if (std::from_chars(text.data(), stop, whole).ptr == stop) {
      if (!__builtin_mul_overflow(whole, known.factor, &whole)) return whole;
    } else if (number * static_cast<double>(known.factor) < 0x1p63) {
      return static_cast<std::uint64_t>(number * static_cast<double>(known.factor));
    }
    return usage_error(fmt::format("{} does not fit into 64 bits", quoted_name(text)));
  }
  return usage_error(fmt::format("{} is not a size", quoted_name(text)), kSizeHelp);
}

Result<std::uint64_t> to_bytes(const ConfigNode& node) {
  if (!node.is_scalar()) return not_a(node, "a size", kSizeHelp);
  Result<std::uint64_t> bytes = parse_bytes(node.scalar);
  if (bytes) return bytes;
  return error_at(node, bytes.error().what, bytes.error().help);
}

}  // namespace ggufmill
