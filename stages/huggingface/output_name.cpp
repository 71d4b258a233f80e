#include "stages/huggingface/output_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "pipeline/core/text.h"
#include "stages/huggingface/tokenizer/unicode.h"

namespace ggufmill::huggingface {
namespace {

std::string in_case(std::string_view text, int (*change)(int)) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(change(static_cast<unsigned char>(c)));
  return out;
}

// Trims white space and replaces spaces with dashes.
std::string with_dashes(std::string_view text) {
  const std::vector<Character> all = characters(text);
  const auto is_text = [](const Character& character) { return !is_space(character.code); };
  const auto first = std::find_if(all.begin(), all.end(), is_text);
  if (first == all.end()) return {};
  const auto last = std::find_if(all.rbegin(), all.rend(), is_text);
  std::string out(text.substr(first->begin, last->begin + last->bytes - first->begin));
  std::replace(out.begin(), out.end(), ' ', '-');
  return out;
}

}  // namespace

Result<std::string> default_output_name(const ModelId& id, std::string_view file_type, OutputContent content) {
  std::string name = with_dashes(id.basename ? *id.basename : id.name.value_or("ggml-model"));
  std::replace(name.begin(), name.end(), '/', '-');
  if (content == OutputContent::kDraftHead) name.insert(0, "mtp-");
  if (content == OutputContent::kProjector) name.insert(0, "mmproj-");
  const bool is_adapter = content == OutputContent::kAdapter;
  if (id.size_label && (content == OutputContent::kModel || is_adapter)) name += "-" + *id.size_label;
  if (id.finetune) name += "-" + with_dashes(*id.finetune);
  if (id.version) name += "-" + with_dashes(*id.version);
  name += "-" + (content == OutputContent::kVocabulary ? "vocab" : in_case(file_type, std::toupper));
  name += is_adapter ? "-LoRA.gguf" : ".gguf";
  const bool fits = std::none_of(name.begin(), name.end(),
                                 [](char c) { return c == '/' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  if (!fits)
    return input_error(
        "", fmt::format("the model would be written to {}, which is not a valid file name", quoted_name(name)),
        "specify an output name");
  return name;
}

Result<std::string> fill_output_name(std::string_view name, std::string_view file_type) {
  const std::string small = in_case(file_type, std::tolower), capital = in_case(file_type, std::toupper);
  std::string out;
  for (std::size_t at = 0; at < name.size(); ++at) {
    const char c = name[at];
    if (c != '{' && c != '}') {
      out += c;
      continue;
    }
    if (name.substr(at + 1).starts_with(c)) {
      out += c;
      ++at;
      continue;
    }
    const std::size_t end = c == '{' ? name.find('}', at) : std::string_view::npos;
    if (end == std::string_view::npos)
      return usage_error(fmt::format("unmatched '{}' in output name {}", c, quoted_name(name)),
                         fmt::format("write {0}{0} for the character itself", c));
    const std::string_view field = name.substr(at + 1, end - at - 1);
    if (field.empty() || field == "0" || field == "ftype" || field == "outtype")
      out += small;
    else if (field == "FTYPE" || field == "OUTTYPE")
      out += capital;
    else
      return usage_error(
          fmt::format("unknown {} in output name {}", quoted_name(name.substr(at, end - at + 1)), quoted_name(name)),
          "{ftype} and {outtype} stand for the type, {FTYPE} and {OUTTYPE} for the type in upper case");
    at = end;
  }
  return out;
}

}  // namespace ggufmill::huggingface
