#include "pipeline/core/option_reference.h"

#include <algorithm>

namespace ggufmill {
namespace {

// Control characters, which names from outside cannot contain in a message: quoted_name() escapes them.
constexpr char kBegin = '\x01', kValue = '\x02', kEnd = '\x03';

}  // namespace

std::string option_reference(std::string_view name, std::string_view value) {
  std::string text(1, kBegin);
  text += name;
  text += kValue;
  text += value;
  return text + kEnd;
}

std::string replace_option_references(std::string_view text, const OptionWriter& write) {
  std::string out;
  while (true) {
    const std::size_t begin = text.find(kBegin), value = text.find(kValue, begin), end = text.find(kEnd, value);
    out += text.substr(0, end == text.npos ? text.npos : begin);
    if (end == text.npos) return out;
    out += write(text.substr(begin + 1, value - begin - 1), text.substr(value + 1, end - value - 1));
    text.remove_prefix(end + 1);
  }
}

}  // namespace ggufmill
