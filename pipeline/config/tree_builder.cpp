#include "pipeline/config/tree_builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/config/fields.h"
#include "pipeline/config/yaml_text.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

constexpr std::size_t kDeepest = 64;
constexpr std::size_t kMaxNodes = 100000;
constexpr const char* kBracketHelp = "put text that contains any of { } [ ] in quotes, such as '${NAME}'";
constexpr std::string_view kTextTag = "tag:yaml.org,2002:str";

// Number of values that a copy counts as towards the limit; a long scalar counts as several.
std::size_t weight_of(const ConfigNode& node) {
  std::size_t weight = 1 + node.scalar.size() / 100;
  for (const ConfigNode& item : node.items) weight += weight_of(item);
  for (const ConfigNode::Entry& entry : node.entries) weight += entry.key.size() / 100 + weight_of(entry.value);
  return weight;
}

std::size_t depth_of(const ConfigNode& node) {
  std::size_t deepest = 0;
  for (const ConfigNode& item : node.items) deepest = std::max(deepest, depth_of(item));
  for (const ConfigNode::Entry& entry : node.entries) deepest = std::max(deepest, depth_of(entry.value));
  return deepest + 1;
}

ReadStopped too_many(const ConfigNode& node) { return {error_at(node, fmt::format("more than {} values", kMaxNodes))}; }

}  // namespace

std::size_t TreeBuilder::offset_of(const YAML::Mark& mark) const {
  return std::min(static_cast<std::size_t>(std::max(mark.pos, 0)), text_.size());
}

Position TreeBuilder::place_of(const YAML::Mark& mark, int length) const {
  return {std::max(mark.line, 0) + 1, std::max(mark.column, 0) + 1, length};
}

// Reports a violation and lets the walk continue, so that further errors are found.
void TreeBuilder::refuse(const YAML::Mark& mark, std::string what, std::string help) {
  valid_ = false;
  note(error_at(&shown_, place_of(mark, 1), std::move(what), std::move(help)));
}

void TreeBuilder::note(Error error) {
  if (errors_.errors().size() >= kMaxErrors) throw ReadStopped{std::move(error)};
  errors_.add(std::move(error));
}

void TreeBuilder::check_properties(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
  if (anchor != 0 && !foreign_) refuse(mark, "anchors (&) are not supported", "write out the value where it is used");
  const std::size_t at = reached_ = offset_of(mark);
  if (foreign_ && tag == kTextTag) return;
  const bool written = at < text_.size() && text_[at] == '!';
  if (written || (tag != "?" && tag != "!" && !tag.empty()))
    refuse(mark, "tags (!) are not supported", "put text that begins with ! in quotes");
}

Error TreeBuilder::too_long() const {
  return error_at(&shown_, position_of(text_, reached_),
                  "a value here has too many brackets, commas, colons, and quotes",
                  "write a long list as lines that begin with a dash, not in brackets");
}

ConfigNode TreeBuilder::make(ConfigNode::Kind kind, Position position) {
  ConfigNode node;
  node.kind = kind;
  node.position = position;
  node.text = &shown_;
  if (++nodes_ > kMaxNodes) throw too_many(node);
  return node;
}

void TreeBuilder::OnDocumentStart(const YAML::Mark& mark) {
  if (++documents_ == 1) return;
  const bool marked = text_.substr(offset_of(mark), 3) == "---";
  throw ReadStopped{error_at(&shown_, place_of(mark, marked ? 3 : 1),
                             marked ? "a second document begins here" : "unexpected text after the end of the document",
                             marked ? "a file must contain exactly one" : "")};
}

void TreeBuilder::OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) {
  check_properties(mark, "", anchor);
  add(make(ConfigNode::Kind::kNull, place_of_null(mark)));
}

// Returns the position of an explicit null, or else of the key or dash without a value: yaml-cpp reports the position
// of the next token.
Position TreeBuilder::place_of_null(const YAML::Mark& mark) const {
  const std::size_t at = offset_of(mark);
  const std::string_view rest = text_.substr(at);
  const bool is_key = !frames_.empty() && frames_.back().node.is_map() && !frames_.back().has_key;
  const std::string_view ends = is_key ? " \t\r\n,]}:" : " \t\r\n,]}";
  for (const std::string_view word : {"null", "Null", "NULL", "~"}) {
    const std::string_view next = rest.substr(std::min(word.size(), rest.size())).substr(0, 1);
    if (rest.substr(0, word.size()) == word && ends.find(next) != std::string_view::npos)
      return place_of(mark, static_cast<int>(word.size()));
  }
  if (frames_.empty()) return place_of(mark, 1);
  if (frames_.back().has_key) return frames_.back().entry.position;
  const std::size_t dash = text_.find_last_not_of(" \t\r\n", at == 0 ? 0 : at - 1);
  if (dash == std::string_view::npos || text_[dash] != '-') return place_of(mark, 1);
  const auto lines = static_cast<int>(std::count(text_.begin() + dash, text_.begin() + at, '\n'));
  const std::size_t line_begin = text_.rfind('\n', dash) + 1;  // npos + 1 is 0
  return {mark.line + 1 - lines, static_cast<int>(dash - line_begin) + 1, 1};
}

void TreeBuilder::OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) {
  if (foreign_) {
    const auto named = anchored_.find(anchor);
    if (named == anchored_.end())
      throw ReadStopped{error_at(&shown_, place_of(mark, 1), "the alias is inside the value that it refers to")};
    ConfigNode copy = copied(named->second);
    check_depth(copy, depth_of(copy));
    add(std::move(copy));
    return;
  }
  refuse(mark, "aliases (*) are not supported", "write the value out, or put text that begins with * in quotes");
  add(make(ConfigNode::Kind::kNull, place_of(mark, 1)));
}

void TreeBuilder::OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                           const std::string& value) {
  check_properties(mark, tag, anchor);
  // yaml-cpp treats the end of the text as the closing quote.
  if (tag == "!" && is_unclosed_quote(text_, offset_of(mark)))
    throw ReadStopped{error_at(&shown_, place_of(mark, 1), "the quote is not closed")};
  ConfigNode node = make(ConfigNode::Kind::kScalar, place_of(mark, scalar_length(text_, offset_of(mark), value)));
  node.scalar = value;
  node.quoted = tag == "!" || tag == kTextTag;
  remember(anchor, node);
  add(std::move(node));
}

void TreeBuilder::OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                                  YAML::EmitterStyle::value) {
  check_properties(mark, tag, anchor);
  open(make(ConfigNode::Kind::kList, place_of(mark, 1)), offset_of(mark), anchor);
}

void TreeBuilder::OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                             YAML::EmitterStyle::value) {
  check_properties(mark, tag, anchor);
  open(make(ConfigNode::Kind::kMap, place_of(mark, 1)), offset_of(mark), anchor);
}

// Reports a list or map in the position of a key. yaml-cpp treats an unclosed bracket as one.
void TreeBuilder::refuse_key(const ConfigNode& node, std::size_t offset) const {
  const std::string bracket(text_.substr(offset, 1));
  throw ReadStopped{error_at(node,
                             bracket == "{" || bracket == "["
                                 ? fmt::format("the '{}' is not closed, or is in place of a key", bracket)
                                 : "a key cannot be a list",
                             kBracketHelp)};
}

void TreeBuilder::check_depth(const ConfigNode& node, std::size_t levels) const {
  if (frames_.size() + levels > kDeepest)
    throw ReadStopped{error_at(node, fmt::format("nested more than {} levels deep", kDeepest))};
}

void TreeBuilder::remember(YAML::anchor_t anchor, const ConfigNode& node) {
  if (foreign_ && anchor != 0) anchored_.emplace(anchor, copied(node));
}

ConfigNode TreeBuilder::copied(const ConfigNode& node) {
  nodes_ += weight_of(node);
  if (nodes_ > kMaxNodes) throw too_many(node);
  return node;
}

void TreeBuilder::open(ConfigNode node, std::size_t offset, YAML::anchor_t anchor) {
  check_depth(node, 1);
  if (!frames_.empty() && frames_.back().node.is_map() && !frames_.back().has_key) refuse_key(node, offset);
  frames_.emplace_back().node = std::move(node);
  frames_.back().anchor = anchor;
}

void TreeBuilder::close() {
  ConfigNode node = std::move(frames_.back().node);
  remember(frames_.back().anchor, node);
  frames_.pop_back();
  add(std::move(node));
}

void TreeBuilder::add(ConfigNode node) {
  if (frames_.empty()) {
    root_ = std::move(node);
    return;
  }
  Frame& frame = frames_.back();
  if (frame.node.is_list()) {
    frame.node.items.push_back(std::move(node));
  } else if (!frame.has_key) {
    add_key(node);
  } else {
    frame.has_key = false;
    if (frame.same) {
      if (foreign_) frame.node.entries[*frame.same].value = std::move(node);
      return;
    }
    frame.entry.value = std::move(node);
    frame.node.entries.push_back(std::move(frame.entry));
  }
}

void TreeBuilder::add_key(const ConfigNode& node) {
  if (!node.is_scalar()) throw ReadStopped{error_at(node, "a key must be a string", "put it in quotes")};
  if (node.scalar == "<<" && !node.quoted) {
    valid_ = false;
    note(error_at(node, "merge keys (<<) are not supported", "write the keys out"));
  }
  Frame& frame = frames_.back();
  Position& map = frame.node.position;
  if (map.line == node.position.line && map.column == node.position.column) map.length = node.position.length;
  frame.entry = {node.scalar, node.position, {}};
  frame.has_key = true;
  const auto [first, is_new] = frame.seen.emplace(node.scalar, frame.node.entries.size());
  frame.same = is_new ? std::nullopt : std::optional(first->second);
  if (!is_new && !foreign_)
    note(error_at(node, fmt::format("duplicate key {}", quoted_name(node.scalar)),
                  fmt::format("it is already in line {}", frame.node.entries[first->second].position.line)));
}

std::optional<ConfigNode> TreeBuilder::take() {
  if (!valid_) return {};
  if (!root_) root_ = make(ConfigNode::Kind::kNull, {});
  return std::move(root_);
}

}  // namespace ggufmill
