#include "pipeline/io/remote/xml.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace ggufmill::remote {
namespace {

constexpr unsigned kMaxDepth = 16;
constexpr std::size_t kMaxElements = 200'000;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

bool append_utf8(std::uint32_t code, std::string& out) {
  if (code == 0 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return false;
  const auto add = [&](std::uint32_t bits) { out += static_cast<char>(bits); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xc0 | code >> 6);
    add(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    add(0xe0 | code >> 12);
    add(0x80 | (code >> 6 & 0x3f));
    add(0x80 | (code & 0x3f));
  } else {
    add(0xf0 | code >> 18);
    add(0x80 | (code >> 12 & 0x3f));
    add(0x80 | (code >> 6 & 0x3f));
    add(0x80 | (code & 0x3f));
  }
  return true;
}

// Each function returns false if the text is malformed.
class XmlReader {
 public:
  explicit XmlReader(std::string_view text) : rest_(text) {}

  bool read_document(XmlElement& root) {
    (void)skip("\xef\xbb\xbf");
    return skip_between() && read_element(root, 0) && skip_between() && rest_.empty();
  }

 private:
  bool skip(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  void skip_space() {
    while (!rest_.empty() && is_space(rest_.front())) rest_.remove_prefix(1);
  }
  // Skips up to the end of `end`; `inside` receives what is before it.
  bool skip_to(std::string_view end, std::string_view* inside = nullptr) {
    const std::size_t at = rest_.find(end);
    if (at == rest_.npos) return false;
    if (inside) *inside = rest_.substr(0, at);
    rest_.remove_prefix(at + end.size());
    return true;
  }
  // Skips white space, comments, and processing instructions.
  bool skip_between() {
    for (skip_space(); !rest_.empty(); skip_space())
      if (skip("<!--")) {
        if (!skip_to("-->")) return false;
      } else if (skip("<?")) {
        if (!skip_to("?>")) return false;
      } else {
        return true;
      }
    return true;
  }

  bool read_name(std::string_view& name) {
    const auto end = std::ranges::find_if(
        rest_, [](char c) { return is_space(c) || std::string_view("<>/=&\"'?!").find(c) != std::string_view::npos; });
    name = rest_.substr(0, static_cast<std::size_t>(end - rest_.begin()));
    rest_.remove_prefix(name.size());
    return !name.empty();
  }
  // Returns the name without its prefix; empty if it is malformed.
  static std::string_view local_name(std::string_view name) {
    const std::size_t colon = name.find(':');
    if (colon == name.npos) return name;
    const std::string_view local = name.substr(colon + 1);
    return colon == 0 || local.find(':') != local.npos ? std::string_view() : local;
  }
  // Skips the attributes and the end of a start tag.
  bool skip_attributes(bool& is_empty) {
    while (true) {
      skip_space();
      if ((is_empty = skip("/>")) || skip(">")) return true;
      std::string_view name, value;
      if (!read_name(name)) return false;
      skip_space();
      if (!skip("=")) return false;
      skip_space();
      const std::string_view quote = rest_.substr(0, 1);
      if ((quote != "\"" && quote != "'") || !skip(quote) || !skip_to(quote, &value) || value.find('<') != value.npos)
        return false;
    }
  }
  bool read_reference(std::string& into) {
    constexpr std::pair<std::string_view, char> kEntities[] = {
        {"quot", '"'}, {"apos", '\''}, {"lt", '<'}, {"gt", '>'}, {"amp", '&'}};
    std::string_view name;
    if (!skip("&") || !skip_to(";", &name)) return false;
    if (!name.starts_with('#')) {
      const auto entity = std::ranges::find(kEntities, name, &std::pair<std::string_view, char>::first);
      if (entity == std::end(kEntities)) return false;
      into += entity->second;
      return true;
    }
    const bool is_hex = name.starts_with("#x");
    name.remove_prefix(is_hex ? 2 : 1);
    std::uint32_t code = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), code, is_hex ? 16 : 10);
    return error == std::errc() && end == name.data() + name.size() && append_utf8(code, into);
  }
  // Reads the content of an element and its end tag.
  bool read_content(XmlElement& element, std::string_view name, unsigned depth) {
    while (!rest_.empty()) {
      if (skip("</")) {
        if (!skip(name)) return false;
        skip_space();
        return skip(">");
      }
      if (skip("<!--")) {
        if (!skip_to("-->")) return false;
      } else if (skip("<?")) {
        if (!skip_to("?>")) return false;
      } else if (skip("<![CDATA[")) {
        std::string_view inside;
        if (!skip_to("]]>", &inside)) return false;
        element.text += inside;
      } else if (rest_.front() == '<') {
        if (!read_element(element.children.emplace_back(), depth + 1)) return false;
      } else if (rest_.front() == '&') {
        if (!read_reference(element.text)) return false;
      } else {
        const std::string_view text = rest_.substr(0, rest_.find_first_of("<&"));
        element.text += text;
        rest_.remove_prefix(text.size());
      }
    }
    return false;
  }
  bool read_element(XmlElement& element, unsigned depth) {
    std::string_view name;
    if (depth > kMaxDepth || ++elements_ > kMaxElements || !skip("<") || !read_name(name)) return false;
    element.name = local_name(name);
    if (element.name.empty()) return false;
    bool is_empty = false;
    if (!skip_attributes(is_empty)) return false;
    return is_empty || read_content(element, name, depth);
  }

  std::string_view rest_;
  std::size_t elements_ = 0;
};

}  // namespace

const XmlElement* XmlElement::child(std::string_view child_name) const {
  const auto found =
      std::ranges::find(children, child_name, [](const XmlElement& each) -> std::string_view { return each.name; });
  return found == children.end() ? nullptr : &*found;
}

std::string_view XmlElement::text_of(std::string_view child_name) const {
  const XmlElement* const found = child(child_name);
  return found ? std::string_view(found->text) : std::string_view();
}

std::optional<XmlElement> parse_xml(std::string_view text) {
  XmlElement root;
  if (!XmlReader(text).read_document(root)) return std::nullopt;
  return root;
}

}  // namespace ggufmill::remote
