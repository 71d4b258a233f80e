#pragma once
// A parsed configuration file, independent of the YAML library: a tree whose nodes record their position in the text.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/core/lifetime.h"

namespace ggufmill {

// 1-based line and column (in bytes), and the number of bytes to mark. Line 0 means that it is not from a file.
struct Position {
  int line = 0;
  int column = 0;
  int length = 1;
};

// The text from which a tree was parsed, kept for messages.
struct ConfigText {
  std::string name;  // path, or "--set"
  std::vector<std::string> lines;
  bool numbered = true;  // false: a command-line argument, shown without line and column numbers
};

struct ConfigNode {
  enum class Kind { kNull, kScalar, kList, kMap };
  struct Entry;

  Kind kind = Kind::kNull;
  Position position;
  const ConfigText* text = nullptr;  // outlives the node
  std::string scalar;                // after unquoting and parameter substitution
  bool quoted = false;               // a quoted scalar is always a string
  bool substituted = false;          // contains a parameter value: may be a number even if quoted
  std::vector<ConfigNode> items;     // items of a list
  std::vector<Entry> entries;        // entries of a map, in file order

  const ConfigNode* find(std::string_view key) const GGUFMILL_OUTLIVES_RESULT;
  bool is_scalar() const { return kind == Kind::kScalar; }
  bool is_list() const { return kind == Kind::kList; }
  bool is_map() const { return kind == Kind::kMap; }
};

struct ConfigNode::Entry {
  std::string key;
  Position position;  // position of the key
  ConfigNode value;
};

// A parsed file: the tree, and the text to which its nodes point. Keep both together.
struct ConfigDocument {
  std::shared_ptr<const ConfigText> text;
  ConfigNode root;
};

// Returns the location of a node or of a position in a text, for use in messages: "file:line:column", the source line
// and a caret. A long line is truncated to the part around the caret; control characters are replaced.
Origin origin_of(const ConfigNode& node);
Origin origin_of(const ConfigText* text, Position position);
// Returns an error at that location, with exit code 2.
Error error_at(const ConfigNode& node, std::string what, std::string help = {});
Error error_at(const ConfigText* text, Position position, std::string what, std::string help = {});

}  // namespace ggufmill
