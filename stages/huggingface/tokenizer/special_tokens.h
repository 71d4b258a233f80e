#pragma once
// Special tokens and chat templates of a checkpoint: from tokenizer.json, tokenizer_config.json and config.json,
// looked up in the order of gguf-py's SpecialVocab.

#include <boost/json/value.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/core/metadata.h"
#include "pipeline/io/platform/filesystem.h"
#include "stages/huggingface/tokenizer/tokenizer_json.h"

namespace ggufmill::huggingface {

inline constexpr std::uint64_t kMaxChatTemplate = 1 << 20;  // bytes per template; the longest in use have some 60 KB

// The JSON files in a folder that define a tokenizer; null for missing files.
struct TokenizerFiles {
  fs::path folder;
  std::optional<TokenizerJson> tokenizer;  // tokenizer.json
  boost::json::value tokenizer_config;     // tokenizer_config.json
  boost::json::value config;               // config.json

  static Result<TokenizerFiles> read(const fs::path& folder);
};

class SpecialTokens {
 public:
  // Finds the tokens of the given roles. If `tokens` is given, ids from `tokens` on are skipped with a warning.
  static Result<SpecialTokens> find(const TokenizerFiles& files, std::vector<std::string> roles,
                                    std::optional<std::uint64_t> tokens, std::vector<std::string>& warnings);
  // Has no effect if the role is already set.
  void set(std::string_view role, std::uint64_t id, std::vector<std::string>& warnings);
  void replace(std::string_view role, std::uint64_t id);
  // Writes the ids, then the flags for adding them, then the chat templates, then the normalizer's settings.
  void write(Metadata& out) const;

 private:
  using Json = boost::json::value;

  void read_normalizer(const Json& normalizer);
  void read_post_processor(const Json& step, Json& config);
  void read_template_step(const Json& step, Json& config);
  Status read_chat_templates(const TokenizerFiles& files, const Json& config);
  Status read_ids(const TokenizerFiles& files, const Json& config);
  Status set_json(const std::string& where, std::string_view role, const Json* id);
  void set_added(std::string_view role, bool value);
  void set_added_if_unset(std::string_view role, bool value);
  bool* find_added(std::string_view role);  // nullptr: not set

  std::vector<std::string> roles_;
  std::optional<std::uint64_t> tokens_;
  std::vector<std::string>* warnings_ = nullptr;  // only while find() runs
  std::vector<std::pair<std::string, std::uint64_t>> ids_;
  std::vector<std::pair<std::string, bool>> added_;
  std::optional<std::string> chat_template_;  // the only or the default template
  std::vector<std::pair<std::string, std::string>> named_templates_;
  std::optional<bool> lowercase_, strip_accents_;
};

}  // namespace ggufmill::huggingface
