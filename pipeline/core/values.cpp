#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>

#include "pipeline/core/fields.h"

namespace ggufmill {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

constexpr Unit kUnits[] = {
    {"", 1},           {"B", 1},           {"K", 1000},       {"KB", 1000},      {"KiB", 1ull << 10},
    {"M", 1000000},    {"MB", 1000000},    {"MiB", 1ull << 20}, {"G", 1000000000}, {"GB", 1000000000},
    {"GiB", 1ull << 30}, {"T", 1000000000000}, {"TB", 1000000000000}, {"TiB", 1ull << 40},
};

template <class T>
Result<T> parse_whole(const ConfigNode& node, std::string_view kind) {
  T value{};
  const char* end = node.scalar.data() + node.scalar.size();
  const auto [stop, error] = std::from_chars(node.scalar.data(), end, value);
  if (!node.is_scalar() || error != std::errc() || stop != end)
    return error_at(node, fmt::format("'{}' is not {}", node.scalar, kind));
  return value;
}

}  // namespace

Result<bool> to_bool(const ConfigNode& node) {
  if (node.is_scalar() && node.scalar == "true") return true;
  if (node.is_scalar() && node.scalar == "false") return false;
  return error_at(node, fmt::format("'{}' is not true or false", node.scalar));
}

Result<std::int64_t> to_integer(const ConfigNode& node) { return parse_whole<std::int64_t>(node, "a whole number"); }

Result<double> to_number(const ConfigNode& node) { return parse_whole<double>(node, "a number"); }

Result<std::uint64_t> parse_bytes(std::string_view text) {
  double number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(stop, static_cast<std::size_t>(text.data() + text.size() - stop));
  for (const Unit& known : kUnits) {
    if (error != std::errc() || known.name != unit || !(number >= 0)) continue;
    std::uint64_t whole = 0;  // exact where no fraction is written
    if (std::from_chars(text.data(), stop, whole).ptr == stop) {
      if (!__builtin_mul_overflow(whole, known.factor, &whole)) return whole;
    } else if (number * static_cast<double>(known.factor) < 0x1p63) {
      return static_cast<std::uint64_t>(number * static_cast<double>(known.factor));
    }
    return usage_error(fmt::format("'{}' is more than 2^64 bytes", text));
  }
  return usage_error(fmt::format("'{}' is not a size", text), "write a number and a unit: 512MiB, 20G, 1.5GiB");
}

Result<std::uint64_t> to_bytes(const ConfigNode& node) {
  Result<std::uint64_t> bytes = parse_bytes(node.scalar);
  if (!node.is_scalar() || !bytes)
    return error_at(node, fmt::format("'{}' is not a size", node.scalar),
                    "write a number and a unit: 512MiB, 20G, 1.5GiB");
  return bytes;
}

}  // namespace ggufmill
