#include "stages/gguf/file_name.h"

#include "pipeline/core/pattern.h"
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
  // The regular expression of the naming convention, whose groups are the members of FileName in their order.
  static const Pattern kConvention =
      Pattern::compile(
          R"(^(?:(mmproj|mtp)-)?([A-Za-z0-9\s]*(?:-(?:[A-Za-z\s][A-Za-z0-9\s]*|[0-9\s]*))*))"
          R"(-(?:((?:\d+x)?(?:\d+\.)?\d+[A-Za-z](?:-[A-Za-z]+(?:\d+\.)?\d+[A-Za-z]+)?)(?:-([A-Za-z0-9\s-]+))?)?)"
          R"(-(v\d+(?:\.\d+)*)(?:-((?!LoRA|vocab)\w+))?(?:-(LoRA|vocab))?(?:-(\d{5}-of-\d{5}))?\.gguf$)")
          .value();
  constexpr std::size_t kMaxLength = 255;  // limit for a file name; longer ones never match
  const std::string_view name = path.substr(name_begin(path));
  if (name.size() > kMaxLength) return {};
  const auto match = kConvention.match_whole(name);
  if (!match || !match.value()) return {};  // a name that takes too long to match does not follow the convention
  const Pattern::Groups& parts = *match.value();
  return FileName{parts[0], parts[1].value_or(""), parts[2], parts[3], parts[4], parts[5], parts[6], parts[7]};
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
