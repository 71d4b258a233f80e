#pragma once
// Special tokens and chat templates of a checkpoint: from tokenizer.json, tokenizer_config.json and config.json, found
// in the order of gguf-py's SpecialVocab.

#include <boost/json/value.hpp>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/core/metadata.h"
#include "stages/huggingface/tokenizer_json.h"

namespace ggufmill {

inline constexpr std::uint64_t kMaxChatTemplate = 1 << 20;  // bytes of one; the longest in use have some 60 KB

// The JSON files of a folder that a tokenizer is read from; null where a file is not there.
struct TokenizerFiles {
  std::filesystem::path folder;
  std::optional<TokenizerJson> tokenizer;  // tokenizer.json
  boost::json::value tokenizer_config;     // tokenizer_config.json
  boost::json::value config;               // config.json

  static Result<TokenizerFiles> read(const std::filesystem::path& folder);
};

class SpecialTokens {
 public:
  // Looks for the tokens of these roles. Ids from `tokens` on (where it is given) are left out, with a warning.
  static Result<SpecialTokens> find(const TokenizerFiles& files, std::vector<std::string> roles,
                                    std::optional<std::uint64_t> tokens, std::vector<std::string>& warnings);
  // Only where the role has none yet.
  void set(std::string_view role, std::uint64_t id, std::vector<std::string>& warnings);
  void replace(std::string_view role, std::uint64_t id);
  // Ids, then whether they are added, then chat templates, then what the normalizer does.
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

  std::vector<std::string> roles_;
  std::optional<std::uint64_t> tokens_;
  std::vector<std::string>* warnings_ = nullptr;  // while find() runs
  std::vector<std::pair<std::string, std::uint64_t>> ids_;
  std::vector<std::pair<std::string, bool>> added_;
  std::optional<std::string> chat_template_;  // the only or the default one
  std::vector<std::pair<std::string, std::string>> named_templates_;
  std::optional<bool> lowercase_, strip_accents_;
};

}  // namespace ggufmill
