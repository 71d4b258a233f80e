#include "pipeline/core/option_reference.h"

#include <fmt/format.h>

#include <random>

namespace ggufmill {
namespace {

// Marks before, in, and after a reference, and a text with two forms. They contain a random number drawn by this
// process, so that no file, path, or argument can contain them on purpose.
struct Marks {
  std::string begin, value, end;
  std::string keys, options, end_of_both;
};

const Marks& marks() {
  static const Marks kMarks = [] {
    std::random_device random;
    const std::string drawn = fmt::format("{:08x}{:08x}{:08x}", random(), random(), random());
    return Marks{"\x01" + drawn, "\x02" + drawn, "\x03" + drawn, "\x04" + drawn, "\x05" + drawn, "\x06" + drawn};
  }();
  return kMarks;
}

// Replaces texts with two forms by one of them.
std::string with_one_form(std::string_view text, bool has_options) {
  std::string out;
  while (true) {
    const std::size_t keys = text.find(marks().keys), options = text.find(marks().options, keys),
                      end = text.find(marks().end_of_both, options);
    if (end == text.npos) return out += text;
    out += text.substr(0, keys);
    const std::size_t keys_begin = keys + marks().keys.size(), options_begin = options + marks().options.size();
    out +=
        has_options ? text.substr(options_begin, end - options_begin) : text.substr(keys_begin, options - keys_begin);
    text.remove_prefix(end + marks().end_of_both.size());
  }
}

}  // namespace

std::string keys_or_options(std::string_view keys, std::string_view options) {
  return fmt::format("{}{}{}{}{}", marks().keys, keys, marks().options, options, marks().end_of_both);
}

bool has_keys_or_options(std::string_view text) { return text.find(marks().keys) != text.npos; }
std::string as_for_keys(std::string_view text) { return with_one_form(text, false); }
std::string as_for_options(std::string_view text) { return with_one_form(text, true); }

std::string option_reference(std::string_view name, std::string_view value) {
  return fmt::format("{}{}{}{}{}", marks().begin, name, marks().value, value, marks().end);
}

bool has_option_reference(std::string_view text) { return text.find(marks().begin) != text.npos; }

std::string replace_option_references(std::string_view given, const OptionWriter& write) {
  const std::string &begin_mark = marks().begin, &value_mark = marks().value, &end_mark = marks().end;
  const std::string for_keys = as_for_keys(given);
  std::string_view text = for_keys;
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
