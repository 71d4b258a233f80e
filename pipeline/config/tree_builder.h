#pragma once
// Builds a ConfigNode tree from yaml-cpp's events. Private to config.

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/mark.h>

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "pipeline/config/config_node.h"

namespace ggufmill {

// Thrown to stop yaml-cpp's walk if reading cannot continue.
struct ReadStopped {
  Error error;
};

// Author of a text: our own files are read strictly; files of others may have aliases, duplicate keys and the tag
// !!str.
enum class YamlAuthor { kUs, kOthers };

class TreeBuilder final : public YAML::EventHandler {
 public:
  // Positions in `text` refer to `shown`; both must outlive the builder.
  TreeBuilder(std::string_view text, const ConfigText& shown, Diagnostics& errors, YamlAuthor author)
      : text_(text), shown_(shown), errors_(errors), foreign_(author == YamlAuthor::kOthers) {}

  void OnDocumentStart(const YAML::Mark& mark) override;
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override;
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override;
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override;
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override;
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override;
  void OnMapEnd() override { close(); }

  // Byte offset in the text of the last value or key that yaml-cpp reported.
  std::size_t reached() const { return reached_; }
  // Returns the error for a value that begins at reached() and is too long to be read.
  Error too_long() const;

  // Returns the document; nullopt if there were errors other than duplicate keys.
  std::optional<ConfigNode> take();

 private:
  struct Frame {
    ConfigNode node;
    bool has_key = false;
    std::optional<std::size_t> same;  // existing entry with the current key
    ConfigNode::Entry entry;
    std::unordered_map<std::string, std::size_t> seen;  // key -> index of its entry
    YAML::anchor_t anchor = 0;
  };

  std::size_t offset_of(const YAML::Mark& mark) const;
  Position place_of(const YAML::Mark& mark, int length) const;
  Position place_of_null(const YAML::Mark& mark) const;
  void note(Error error);
  void refuse(const YAML::Mark& mark, std::string what, std::string help);
  void check_properties(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor);
  ConfigNode make(ConfigNode::Kind kind, Position position);
  void refuse_key(const ConfigNode& node, std::size_t offset) const;
  void open(ConfigNode node, std::size_t offset, YAML::anchor_t anchor);
  void check_depth(const ConfigNode& node, std::size_t levels) const;
  ConfigNode copied(const ConfigNode& node);
  void remember(YAML::anchor_t anchor, const ConfigNode& node);
  void close();
  void add(ConfigNode node);
  void add_key(const ConfigNode& node);

  std::string_view text_;
  const ConfigText& shown_;
  Diagnostics& errors_;
  bool foreign_;
  std::vector<Frame> frames_;
  std::unordered_map<YAML::anchor_t, ConfigNode> anchored_;  // targets of aliases, if those are allowed
  std::optional<ConfigNode> root_;
  std::size_t reached_ = 0;
  std::size_t nodes_ = 0;
  std::size_t documents_ = 0;
  bool valid_ = true;
};

}  // namespace ggufmill
