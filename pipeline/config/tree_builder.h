#pragma once
// yaml-cpp's events -> ConfigNode tree. Private to config.

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/mark.h>

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "pipeline/config/config_node.h"

namespace ggufmill {

// Thrown to end yaml-cpp's walk: the text cannot be read on.
struct ReadStopped {
  Error error;
};

class TreeBuilder final : public YAML::EventHandler {
 public:
  // `shown` is what positions of `text` refer to; both outlive the builder.
  TreeBuilder(std::string_view text, const ConfigText& shown, Diagnostics& errors)
      : text_(text), shown_(shown), errors_(errors) {}

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

  // Where the last value or key began that yaml-cpp told of, in bytes of the text.
  std::size_t reached() const { return reached_; }
  // The error for a value that begins there and is too long to be read.
  Error too_long() const;

  // The document, when nothing but duplicate keys was wrong.
  std::optional<ConfigNode> take();

 private:
  struct Frame {
    ConfigNode node;
    bool has_key = false;
    bool duplicate = false;  // the value of the present key is dropped
    ConfigNode::Entry entry;
    std::unordered_map<std::string, int> seen;  // key -> its line
  };

  std::size_t offset_of(const YAML::Mark& mark) const;
  Position place_of(const YAML::Mark& mark, int length) const;
  Position place_of_null(const YAML::Mark& mark) const;
  void note(Error error);
  void refuse(const YAML::Mark& mark, std::string what, std::string help);
  void check_properties(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor);
  ConfigNode make(ConfigNode::Kind kind, Position position);
  void refuse_key(const ConfigNode& node, std::size_t offset) const;
  void open(ConfigNode node, std::size_t offset);
  void close();
  void add(ConfigNode node);
  void add_key(const ConfigNode& node);

  std::string_view text_;
  const ConfigText& shown_;
  Diagnostics& errors_;
  std::vector<Frame> frames_;
  std::optional<ConfigNode> root_;
  std::size_t reached_ = 0;
  std::size_t nodes_ = 0;
  std::size_t documents_ = 0;
  bool sound_ = true;
};

}  // namespace ggufmill
