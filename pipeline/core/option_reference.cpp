#include "pipeline/core/option_reference.h"

#include <fmt/format.h>

#include <random>

namespace ggufmill {
namespace {

// What stands before, in, and after a reference. A number that this process has drawn makes them texts that no file,
// path, or argument can contain on purpose.
struct Marks {
  std::string begin, value, end;
};

const Marks& marks() {
  static const Marks kMarks = [] {
    std::random_device random;
    const std::string drawn = fmt::format("{:08x}{:08x}{:08x}", random(), random(), random());
    return Marks{"\x01" + drawn, "\x02" + drawn, "\x03" + drawn};
  }();
  return kMarks;
}

}  // namespace

std::string option_reference(std::string_view name, std::string_view value) {
  return fmt::format("{}{}{}{}{}", marks().begin, name, marks().value, value, marks().end);
}

bool has_option_reference(std::string_view text) { return text.find(marks().begin) != text.npos; }

std::string replace_option_references(std::string_view text, const OptionWriter& write) {
  const auto& [begin_mark, value_mark, end_mark] = marks();
  std::string out;
  while (true) {
    const std::size_t begin = text.find(begin_mark), value = text.find(value_mark, begin),
                      end = text.find(end_mark, value);
    if (end == text.npos) return out += text;
    out += text.substr(0, begin);
    const std::size_t name_begin = begin + begin_mark.size(), value_begin = value + value_mark.size();
    out += write(text.substr(name_begin, value - name_begin), text.substr(value_begin, end - value_begin));
    text.remove_prefix(end + end_mark.size());
  }
}

std::string with_plain_options(std::string_view text) {
  return replace_option_references(text, [](std::string_view name, std::string_view value) {
    return fmt::format("{}{}{}", name, value.empty() ? "" : ": ", value);
  });
}

}  // namespace ggufmill
