#pragma once
// Conversion of YAML text to a ConfigNode tree.

#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "pipeline/config/config_node.h"

namespace ggufmill {

// Texts to which trees point; addresses stay valid as the container grows.
using ConfigTexts = std::deque<ConfigText>;

// Reads one YAML 1.2 document, strictly. Limits: UTF-8, at most 1 MiB, 64 levels, 100,000 values, and 110,000 brackets,
// commas, colons and quotes for one value written in brackets. Duplicate keys, anchors, aliases, merge keys, tags,
// directives and further documents are not allowed, and keys must be text. Scalars stay text; the field tables
// determine their meaning. Returns nullopt if the text cannot be read. If it returns a tree, `errors` may still contain
// duplicate keys (the first one counts). The tree points to the text appended to `texts`. An empty document is a kNull
// node.
std::optional<ConfigNode> read_yaml(std::string_view text, std::string name, ConfigTexts& texts, Diagnostics& errors);

// Does the same for text by another author, such as the front matter of a model card: the last of several duplicate
// keys counts, an alias is replaced with a copy of its target, and a scalar may have the tag !!str.
std::optional<ConfigNode> read_foreign_yaml(std::string_view text, std::string name, ConfigTexts& texts,
                                            Diagnostics& errors);

// Does the same as read_yaml() and also returns the text. For stages that have their own files (recipes).
std::optional<ConfigDocument> read_document(std::string_view text, const std::string& name, Diagnostics& errors);

// Returns true if a name refers to a file rather than a built-in one: it contains a slash, or ends
// in ".yaml" or ".recipe".
bool names_file(std::string_view name);

// Reads a value that starts at byte `begin` of a command-line argument; positions refer to `shown`, its only line.
std::optional<ConfigNode> read_yaml_value(std::size_t begin, const ConfigText& shown, Diagnostics& errors);

}  // namespace ggufmill
