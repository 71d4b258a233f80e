#pragma once
// XML documents that buckets send. Source: Extensible Markup Language 1.0, without document types.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ggufmill::remote {

// An element without its attributes. Names are without namespace prefixes.
struct XmlElement {
  std::string name, text;  // text: its own, unescaped
  std::vector<XmlElement> children;

  // Returns the first child of this name; null if there is none.
  const XmlElement* child(std::string_view child_name) const;
  // Returns the text of that child; empty if there is none.
  std::string_view text_of(std::string_view child_name) const;
};

// Returns the root of a complete, well-formed document; nullopt for anything else, such as a web page, a document that
// was cut off, one with a document type, or one with more than 16 levels or 200,000 elements.
std::optional<XmlElement> parse_xml(std::string_view text);

}  // namespace ggufmill::remote
