#include "stages/gguf/file_name.h"

#include <boost/regex.hpp>
#include <stdexcept>

#include "pipeline/io/platform/filesystem.h"

namespace ggufmill::gguf {
namespace {

std::string in_name(std::string_view text) {
  std::string out;
  for (const char letter : text) out += letter == ' ' || letter == '/' ? '-' : letter;
  return out;
}

}  // namespace

std::optional<FileName> parse_file_name(std::string_view path) {
  // The regular expression of the naming convention.
  static const boost::regex kConvention(
      R"(^(?:(?<Sidecar>mmproj|mtp)-)?(?<Base>[A-Za-z0-9\s]*(?:-(?:[A-Za-z\s][A-Za-z0-9\s]*|[0-9\s]*))*))"
      R"(-(?:(?<Size>(?:\d+x)?(?:\d+\.)?\d+[A-Za-z](?:-[A-Za-z]+(?:\d+\.)?\d+[A-Za-z]+)?)(?:-(?<Fine>[A-Za-z0-9\s-]+))?)?)"
      R"(-(?<Version>v\d+(?:\.\d+)*)(?:-(?<Encoding>(?!LoRA|vocab)\w+))?(?:-(?<Type>LoRA|vocab))?)"
      R"((?:-(?<Shard>\d{5}-of-\d{5}))?\.gguf$)");
  constexpr std::size_t kMaxLength = 255;  // limit for a file name; longer ones never match
  const std::string name(path.substr(name_begin(path)));
  boost::smatch match;
  try {
    if (name.size() > kMaxLength || !boost::regex_match(name, match, kConvention)) return {};
  } catch (const std::runtime_error&) {  // matching is too complex
    return {};
  }
  const auto part = [&](const char* group) {
    return match[group].matched ? std::optional(match[group].str()) : std::nullopt;
  };
  return FileName{part("Sidecar"), match["Base"].str(), part("Size"), part("Fine"),
                  part("Version"), part("Encoding"),    part("Type"), part("Shard")};
}

std::string file_name_of(const Model& model, std::string_view size_label, std::string_view encoding) {
  const auto text = [&](const char* key) -> std::string {
    const MetadataValue* value = model.metadata.find(key);
    return value ? in_name(as_string(*value).value_or("")) : std::string();
  };
  std::string name = text("general.basename");
  if (name.empty()) name = text("general.name");
  if (name.empty()) name = "model";
  const std::string size = text("general.size_label"), finetune = text("general.finetune");
  name += "-" + (size.empty() ? std::string(size_label) : size);
  if (!finetune.empty()) name += "-" + finetune;
  const std::string version = text("general.version");
  name += version.empty() ? "-v1.0" : (version.starts_with('v') ? "-" : "-v") + version;
  if (!encoding.empty()) name += "-" + std::string(encoding);
  const std::string type = text("general.type");
  if (type == "adapter") name += "-LoRA";
  if (model.tensors.empty()) name += "-vocab";
  return name + ".gguf";
}

}  // namespace ggufmill::gguf
