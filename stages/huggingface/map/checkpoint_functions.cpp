// Named functions of value rules: what the files, tensors and tokens of the checkpoint contain.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "pipeline/core/text.h"
#include "pipeline/io/json_file.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/source_path.h"
#include "stages/huggingface/checkpoint/json_values.h"
#include "stages/huggingface/checkpoint/torch_file.h"
#include "stages/huggingface/map/value_functions.h"
#include "stages/huggingface/tokenizer/tokenizer_json.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;

Result<std::optional<fs::path>> file_in_folder(const json::value& value, const Facts& facts) {
  const auto name = json_text(value);
  if (!name || leads_outside(*name)) return input_error({}, fmt::format("{} is not a file name", shown(value)));
  return facts.file(*name);
}

// Returns a member of another JSON file in the folder, or of the dictionary in a torch file.
Result<json::value> file_value(Arguments a, const Facts& facts) {
  BOOST_OUTCOME_TRY(const auto path, file_in_folder(a[0], facts));
  if (!path) return json::value();
  if (path->extension() == ".pt") {
    if (a.size() != 2) return input_error({}, "the dictionary of a torch file has no further levels");
    BOOST_OUTCOME_TRY(const auto file, open_source(path->string()));
    return read_torch_value(file, json_text(a[1]).value_or(""));
  }
  BOOST_OUTCOME_TRY(const json::value content, read_checkpoint_json(path->string()));
  const json::value* at = &content;
  for (const json::value& member : a.subspan(1)) {
    at = json_member(*at, json_text(member).value_or(""));
    if (!at) return json::value();
  }
  return *at;
}

Result<json::value> file_text(Arguments a, const Facts& facts) {
  constexpr std::uint64_t kMaxBytes = 1 << 20;
  BOOST_OUTCOME_TRY(const auto path, file_in_folder(a[0], facts));
  if (!path) return json::value();
  BOOST_OUTCOME_TRY(const std::string text, read_text_file(path->string(), kMaxBytes));
  return json::value(text);
}

// Returns true if the file contains the text, ignoring ASCII case. Reads a file of any size in pieces, each preceded
// by the end of the previous one.
Result<json::value> file_contains(Arguments a, const Facts& facts) {
  constexpr std::uint64_t kPiece = 1 << 20;
  const auto lower_case = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  BOOST_OUTCOME_TRY(const auto path, file_in_folder(a[0], facts));
  const auto wanted = json_text(a[1]);
  if (!wanted || wanted->empty() || wanted->size() > kPiece)
    return input_error({}, fmt::format("{} is not a string to search for", shown(a[1])));
  if (!path) return json::value(false);
  std::string text(*wanted), piece;
  std::ranges::transform(text, text.begin(), lower_case);
  BOOST_OUTCOME_TRY(const auto file, open_source(path->string()));
  for (std::uint64_t offset = 0; offset < file->bytes();) {
    piece.erase(0, piece.size() - std::min(piece.size(), text.size() - 1));
    const std::size_t kept = piece.size();
    piece.resize(kept + static_cast<std::size_t>(std::min(kPiece, file->bytes() - offset)));
    const auto into = std::span(piece).subspan(kept);
    BOOST_OUTCOME_TRY(file->read(offset, std::as_writable_bytes(into)));
    std::ranges::transform(into, into.begin(), lower_case);
    if (piece.find(text) != std::string::npos) return json::value(true);
    offset += into.size();
  }
  return json::value(false);
}

// Opens the file, so that a server that does not respond is an error: otherwise, all files would seem to be there.
Result<json::value> has_file(Arguments a, const Facts& facts) {
  BOOST_OUTCOME_TRY(const auto path, file_in_folder(a[0], facts));
  if (!path) return json::value(false);
  BOOST_OUTCOME_TRY(open_source(path->string()));
  return json::value(true);
}

Result<json::value> token_id(Arguments a, const Facts& facts) {
  const auto text = json_text(a[0]);
  if (!text) return input_error({}, fmt::format("{} is not a token", shown(a[0])));
  const std::optional<std::uint64_t> id = facts.token(*text);
  if (!id) return input_error({}, fmt::format("the tokenizer has no token {}", quoted_name(*text)));
  return json::value(*id);
}

Result<json::value> has_tensor(Arguments a, const Facts& facts) {
  const auto name = json_text(a[0]);
  if (!name) return input_error({}, fmt::format("{} is not a name", shown(a[0])));
  return json::value(std::ranges::find(facts.tensors(), *name) != facts.tensors().end());
}

constexpr std::string_view kLayer = "{layer}";

// Calls `visit` with the name of every tensor that the pattern stands for: the one of this name, or if it contains
// {layer}, those of all layers from 0 to the first without one.
Status for_each_tensor(const json::value& pattern, const Facts& facts, const auto& visit) {
  const auto text = json_text(pattern);
  if (!text) return input_error({}, fmt::format("{} is not a name", shown(pattern)));
  const std::size_t place = text->find(kLayer);
  const std::unordered_set<std::string_view> names(facts.tensors().begin(), facts.tensors().end());
  for (int layer = 0;; ++layer) {
    std::string name(*text);
    if (place != name.npos) name.replace(place, kLayer.size(), std::to_string(layer));
    if (!names.contains(name)) return ok();
    BOOST_OUTCOME_TRY(visit(name));
    if (place == name.npos) return ok();
  }
}

// Returns the count of a tensor, or a list of those of all layers.
Result<json::value> counts_of(const json::value& pattern, const Facts& facts, const auto& count) {
  json::array counts;
  BOOST_OUTCOME_TRY(for_each_tensor(pattern, facts, [&](const std::string& name) -> Status {
    counts.emplace_back(count(name));
    return ok();
  }));
  if (counts.empty()) return json::value();
  return json_text(pattern)->find(kLayer) == std::string_view::npos ? counts[0] : json::value(std::move(counts));
}

Result<json::value> tensor_rows(Arguments a, const Facts& facts) {
  return counts_of(a[0], facts, [&](const std::string& name) { return facts.rows_of_tensor(name); });
}

Result<json::value> tensor_columns(Arguments a, const Facts& facts) {
  return counts_of(a[0], facts, [&](const std::string& name) { return facts.columns_of_tensor(name); });
}

// Returns the values of an I64 tensor, exactly.
Result<json::value> tensor_integers(Arguments a, const Facts& facts) {
  BOOST_OUTCOME_TRY(const json::value is_there, has_tensor(a, facts));
  if (!is_there.get_bool()) return json::value();
  BOOST_OUTCOME_TRY(const std::vector<std::int64_t> values, facts.integers_of_tensor(std::string(*json_text(a[0]))));
  return json::value(json::array(values.begin(), values.end()));
}

// Returns the numbers of the rows from the second argument on that consist of zeros.
Result<json::value> zero_rows(Arguments a, const Facts& facts) {
  BOOST_OUTCOME_TRY(const json::value is_there, has_tensor(a, facts));
  if (!is_there.get_bool() || a[1].is_null()) return json::value();
  const auto first = whole_number(a[1]);
  if (!first || *first < 0) return input_error({}, fmt::format("{} is not a number of rows", shown(a[1])));
  const std::string name(*json_text(a[0]));
  const std::uint64_t end = facts.rows_of_tensor(name);
  constexpr std::uint64_t kMax = 1 << 16;
  if (end > static_cast<std::uint64_t>(*first) + kMax)
    return input_error({}, fmt::format("{} has {} rows from {} on; the limit is {}", quoted_name(name),
                                       end - static_cast<std::uint64_t>(*first), *first, kMax));
  json::array rows;
  for (auto row = static_cast<std::uint64_t>(*first); row < end; ++row) {
    BOOST_OUTCOME_TRY(const std::vector<float> values, facts.values_of_tensor(name, row));
    if (std::ranges::all_of(values, [](float value) { return value == 0; })) rows.emplace_back(row);
  }
  return json::value(std::move(rows));
}

Result<json::value> layers_of(Arguments a, const Facts& facts) {
  const auto text = json_text(a[0]);
  std::int64_t layers = 0;
  for (const std::string& name : facts.tensors()) {
    if (!text || !name.starts_with(*text)) continue;
    std::int64_t number = -1;
    std::from_chars(name.data() + text->size(), name.data() + std::min(name.size(), text->size() + 6), number);
    layers = std::max(layers, number + 1);
  }
  return json::value(layers);
}

// Returns the values of a tensor; for a name with {layer}, concatenates those of all layers from 0 on.
Result<json::value> tensor_values(Arguments a, const Facts& facts) {
  constexpr std::size_t kMax = 1 << 20;
  json::array result;
  BOOST_OUTCOME_TRY(for_each_tensor(a[0], facts, [&](const std::string& name) -> Status {
    BOOST_OUTCOME_TRY(const std::vector<float> values, facts.values_of_tensor(name));
    if (result.size() + values.size() > kMax)
      return input_error({}, fmt::format("{} has more than {} values", quoted_name(*json_text(a[0])), kMax));
    for (const float value : values) result.emplace_back(static_cast<double>(value));
    return ok();
  }));
  return result.empty() ? json::value() : json::value(std::move(result));
}

// Returns the id of the token with this text among those that tokenizer_config.json or, failing that, tokenizer.json
// adds to the vocabulary.
Result<json::value> added_token(Arguments a, const Facts& facts) {
  const auto text = json_text(a[0]);
  if (!text) return json::value();
  if (const auto file = facts.file("tokenizer_config.json")) {
    BOOST_OUTCOME_TRY(const json::value content, read_checkpoint_json(file->string()));
    const json::value* const added = json_member(content, "added_tokens_decoder");
    if (added && added->is_object())
      for (const auto& [id, token] : added->get_object())
        if (json_string(token, "content") == *text) {
          std::int64_t number = 0;
          const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), number);
          if (error != std::errc() || end != id.data() + id.size())
            return input_error(file->string(), fmt::format("{} is not the id of a token", quoted_name(id)));
          return json::value(number);
        }
  }
  if (const auto file = facts.file("tokenizer.json")) {
    BOOST_OUTCOME_TRY(const TokenizerJson content, read_tokenizer_json(file->string()));
    const json::value* const added = json_member(content.document, "added_tokens");
    if (added && added->is_array())
      for (const json::value& token : added->get_array())
        if (json_string(token, "content") == *text)
          if (const json::value* const id = json_member(token, "id")) return *id;
  }
  return json::value();
}

// Returns the pooling of sentence embeddings according to the file of the Pooling module: 1 mean, 2 CLS, 3 last.
Result<json::value> pooling_type(Arguments, const Facts& facts) {
  const auto modules = facts.file("modules.json");
  if (!modules) return json::value();
  BOOST_OUTCOME_TRY(const json::value content, read_checkpoint_json(modules->string()));
  const json::array* all_modules = content.if_array();
  std::optional<std::string> folder;
  if (all_modules)
    for (const json::value& module : *all_modules)
      if (json_string(module, "type").value_or("").ends_with("Pooling") && !folder)
        folder = std::string(json_string(module, "path").value_or(""));
  if (!folder) return json::value();
  if (leads_outside(*folder))
    return input_error({}, fmt::format("modules.json names the folder '{}', which is outside the checkpoint", *folder));
  const auto config = facts.file(*folder + "/config.json");
  if (!config)
    return input_error({}, fmt::format("modules.json names the folder '{}', which has no config.json", *folder));
  BOOST_OUTCOME_TRY(const json::value pooling, read_checkpoint_json(config->string()));
  const std::string_view mode = json_string(pooling, "pooling_mode").value_or("");
  constexpr const char* kOthers =
      "with another mode in that file, the model is converted, but its embeddings are then others than those of "
      "sentence-transformers";
  std::vector<std::string> modes;
  if (const json::object* const settings = pooling.if_object())
    for (const auto& [key, value] : *settings)
      if (key.starts_with("pooling_mode_") && value == json::value(true)) modes.emplace_back(key);
  if (modes.size() > 1)
    return input_error({},
                       fmt::format("{}/config.json joins the results of {}, and llama.cpp pools in one way only",
                                   *folder, fmt::join(modes, ", ")),
                       kOthers);
  if (json_flag(pooling, "pooling_mode_mean_tokens")) return json::value(1);
  if (json_flag(pooling, "pooling_mode_cls_token")) return json::value(2);
  if (json_flag(pooling, "pooling_mode_lasttoken")) return json::value(3);
  if (mode == "mean") return json::value(1);
  if (mode == "cls") return json::value(2);
  if (mode == "lasttoken") return json::value(3);
  return input_error({}, fmt::format("pooling in {}/config.json is not one of mean, cls, and lasttoken", *folder),
                     kOthers);
}

constexpr ValueFunction kCheckpointFunctions[] = {
    {"added_token", 1, 1, "The id of the token with this text among those that the tokenizer adds to the vocabulary.",
     added_token},
    {"file_contains", 2, 2,
     "Whether a file in the folder contains this text, ignoring case; false if the file is missing.", file_contains},
    {"file_text", 1, 1, "The text of a file in the folder.", file_text},
    {"file_value", 2, 8,
     "A member of another JSON file in the folder: its name, then the names on the path. Of a torch file (.pt), a "
     "whole number, or the values of a small tensor of one dimension.",
     file_value},
    {"has_file", 1, 1, "Whether the folder has a file of this name.", has_file},
    {"has_tensor", 1, 1, "Whether the checkpoint has a tensor of this name.", has_tensor},
    {"layers_of", 1, 1, "One more than the largest number after this text in the checkpoint's names.", layers_of},
    {"pooling_type", 0, 1, "How sentence embeddings are pooled, according to modules.json.", pooling_type},
    {"tensor_columns", 1, 1,
     "The number of values in the rows of a tensor of this name; with {layer} in it, a list of those in all layers; "
     "null if there is none.",
     tensor_columns},
    {"tensor_integers", 1, 1, "The values of a small I64 tensor of this name; null if there is none.", tensor_integers},
    {"tensor_rows", 1, 1,
     "The number of rows of a tensor of this name; with {layer} in it, a list of those in all layers; null if there is "
     "none.",
     tensor_rows},
    {"tensor_values", 1, 1, "The values of a small tensor of this name; with {layer} in it, of those in all layers.",
     tensor_values},
    {"token_id", 1, 1, "The id of the token with this text.", token_id},
    {"zero_rows", 2, 2, "The rows of a tensor, from the second on, that consist of zeros, as a list of their indices.",
     zero_rows},
};

}  // namespace

std::span<const ValueFunction> checkpoint_functions() { return kCheckpointFunctions; }

}  // namespace ggufmill::huggingface
