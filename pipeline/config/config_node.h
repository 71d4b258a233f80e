#pragma once
// A parsed configuration file, independent of the YAML library: a tree whose every node knows its place in the text.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pipeline/core/error.h"

namespace ggufmill {

// 1-based line and column (in bytes) and the number of bytes to mark; line 0: not from a file.
struct Position {
  int line = 0;
  int column = 0;
  int length = 1;
};

// The text a tree was parsed from, kept for messages.
struct ConfigText {
  std::string name;  // path, or "--set"
  std::vector<std::string> lines;
  bool numbered = true;  // false: one command-line argument, shown without line and column numbers
};

struct ConfigNode {
  enum class Kind { kNull, kScalar, kList, kMap };
  struct Entry;

  Kind kind = Kind::kNull;
  Position position;
  const ConfigText* text = nullptr;  // outlives the node
  std::string scalar;                // after unquoting and parameter substitution
  bool quoted = false;               // a quoted scalar is always a string
  bool substituted = false;          // holds the value of a parameter: may be a number even where it is quoted
  std::vector<ConfigNode> items;     // of a list
  std::vector<Entry> entries;        // of a map, in the order of the file

  const ConfigNode* find(std::string_view key) const;
  bool is_scalar() const { return kind == Kind::kScalar; }
  bool is_list() const { return kind == Kind::kList; }
  bool is_map() const { return kind == Kind::kMap; }
};

struct ConfigNode::Entry {
  std::string key;
  Position position;  // of the key
  ConfigNode value;
};

// A parsed file: the tree, and the text that its nodes point into. Keep both together.
struct ConfigDocument {
  std::shared_ptr<const ConfigText> text;
  ConfigNode root;
};

// What messages about a node, or about a place in a text, show of it: "file:line:column", the source line, a caret. A
// long line is cut to the part around the caret; control characters are not shown as such.
Origin origin_of(const ConfigNode& node);
Origin origin_of(const ConfigText* text, Position position);
// The error at that place. Exit code 2.
Error error_at(const ConfigNode& node, std::string what, std::string help = {});
Error error_at(const ConfigText* text, Position position, std::string what, std::string help = {});

}  // namespace ggufmill
