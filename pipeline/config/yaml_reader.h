#pragma once
// YAML text -> ConfigNode tree.

#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "pipeline/config/config_node.h"

namespace ggufmill {

// Texts that trees point into; addresses stay valid while it grows.
using ConfigTexts = std::deque<ConfigText>;

// Reads one YAML 1.2 document, strictly: UTF-8, at most 1 MiB, 64 levels, 100,000 values, and 110,000 brackets,
// commas, colons and quotes for one value that is written in brackets; no duplicate keys, anchors, aliases, merge keys,
// tags, directives or further documents; keys are texts. Scalars stay text: what they mean is up to the field tables. A
// tree comes back unless the text cannot be read; then, duplicate keys may be among `errors` all the same (the first
// one counts). The tree points into the text appended to `texts`. An empty document is a kNull node.
std::optional<ConfigNode> read_yaml(std::string_view text, std::string name, ConfigTexts& texts, Diagnostics& errors);

// The same of a text that somebody else wrote, such as the front matter of a model card: of equal keys the last counts,
// an alias stands for a copy of what it names, and a text may have the tag !!str.
std::optional<ConfigNode> read_foreign_yaml(std::string_view text, std::string name, ConfigTexts& texts,
                                            Diagnostics& errors);

// The same as read_yaml(), with the text beside the tree: for stages that have files of their own (recipes).
std::optional<ConfigDocument> read_document(std::string_view text, const std::string& name, Diagnostics& errors);

// Whether a name that may be one of the built-in files is a file's: it has a slash, or ends in ".yaml".
bool names_file(std::string_view name);

// Reads a value from byte `begin` of a command-line argument on; positions are those in `shown`, its one line.
std::optional<ConfigNode> read_yaml_value(std::size_t begin, const ConfigText& shown, Diagnostics& errors);

}  // namespace ggufmill
