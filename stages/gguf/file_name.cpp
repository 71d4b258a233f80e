#include "stages/gguf/file_name.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "pipeline/core/pattern.h"
#include "pipeline/core/text.h"
#include "pipeline/io/platform/filesystem.h"

namespace ggufmill::gguf {
namespace {

constexpr std::size_t kMaxLength = 255;  // limit for a file name; longer ones never match

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
  const std::string_view name = path.substr(name_begin(path));
  if (name.size() > kMaxLength) return {};
  const auto match = kConvention.match_whole(name);
  if (!match || !match.value()) return {};  // a name that takes too long to match does not follow the convention
  const Pattern::Groups& parts = *match.value();
  return FileName{parts[0], parts[1].value_or(""), parts[2], parts[3], parts[4], parts[5], parts[6], parts[7]};
}

namespace {

bool fits(const std::string& text, const Pattern& pattern) {
  const auto match = pattern.match_whole(text);
  return match && match.value();
}

// Takes a name apart that does not follow the convention, from its end to its beginning.
class Explainer {
 public:
  explicit Explainer(std::string_view path) : name_(path.substr(name_begin(path))) {}

  NameFaults explain() {
    split();
    take_shard();
    take_type();
    take_encoding();
    take_version();
    if (!parts_.empty() && (parts_.front() == "mmproj" || parts_.front() == "mtp")) {
      made_.found.sidecar = parts_.front();
      parts_.erase(parts_.begin());
    }
    take_size();
    take_base();
    if (made_.faults.empty()) made_.faults.emplace_back("the order of the parts");
    suggest();
    return std::move(made_);
  }

 private:
  using Parts = std::vector<std::string>;

  void fault(std::string text) { made_.faults.push_back(std::move(text)); }

  void split() {
    if (name_.size() > kMaxLength) fault(fmt::format("it is longer than {} bytes", kMaxLength));
    std::string stem = name_.substr(0, kMaxLength);
    if (const std::size_t dot = stem.rfind('.'); dot != stem.npos && same_word(stem.substr(dot), kSuffix)) {
      if (stem.substr(dot) != kSuffix) fault(fmt::format("'{}' is written '{}'", stem.substr(dot), kSuffix));
      stem.resize(dot);
    } else {
      fault("it does not end in '.gguf'");
    }
    char separator = '-';
    if (stem.find('-') == stem.npos && stem.find_first_of("_ ") != stem.npos) {
      separator = stem.find(' ') != stem.npos ? ' ' : '_';
      fault(fmt::format("{}, not hyphens, between its parts", separator == '_' ? "underscores" : "spaces"));
    }
    for (std::string_view rest = stem; parts_.empty() || !rest.empty();) {
      parts_.emplace_back(rest.substr(0, rest.find(separator)));
      rest.remove_prefix(std::min(rest.size(), parts_.back().size() + 1));
    }
    if (separator == '_') join_encoding();
  }

  // Joins the last parts that are an encoding together: Q4, K, M.
  void join_encoding() {
    for (std::size_t first = 1; first < parts_.size(); ++first)
      if (is_encoding(parts_[first])) {
        parts_[first] =
            fmt::format("{}", fmt::join(parts_.begin() + static_cast<std::ptrdiff_t>(first), parts_.end(), "_"));
        parts_.resize(first + 1);
      }
  }

  static bool is_encoding(const std::string& part) {
    static const Pattern kEncoding =
        Pattern::compile(R"((?i)(?:I?Q\d+|KQ\d+|TQ\d+|MXFP\d+|NVFP\d+|BF16|FP?16|FP?32|FP?64|FP?8)(?:_\w+)?)").value();
    return fits(part, kEncoding);
  }

  void take_shard() {
    static const Pattern kDigits = Pattern::compile("\\d{1,9}").value();
    const std::size_t count = parts_.size();
    if (count < 3 || parts_[count - 2] != "of" || !fits(parts_[count - 3], kDigits) ||
        !fits(parts_[count - 1], kDigits))
      return;
    const std::string given = fmt::format("{}-of-{}", parts_[count - 3], parts_[count - 1]);
    made_.found.shard = fmt::format("{:0>5}-of-{:0>5}", parts_[count - 3], parts_[count - 1]);
    if (given != *made_.found.shard)
      fault(fmt::format("a shard has five digits: '{}', not '{}'", *made_.found.shard, given));
    parts_.resize(count - 3);
  }

  void take_type() {
    for (const char* type : {"LoRA", "vocab"})
      if (parts_.size() > 1 && same_word(parts_.back(), type)) {
        if (parts_.back() != type) fault(fmt::format("'{}' is written '{}'", parts_.back(), type));
        made_.found.type = type;
        parts_.pop_back();
        return;
      }
  }

  void take_encoding() {
    split_at_dot();
    Parts found;
    for (std::size_t i = 1; i < parts_.size(); ++i)
      if (is_encoding(parts_[i])) found.push_back(parts_[i]);
    if (found.empty()) return;
    if (found.size() > 1) fault(fmt::format("two encodings, '{}' and '{}'", found[found.size() - 2], found.back()));
    made_.found.encoding = found.back();
    const auto last = std::find(parts_.rbegin(), parts_.rend(), found.back());
    is_behind_ = last != parts_.rbegin();
    if (is_behind_) fault(fmt::format("'{}' after the encoding", fmt::join(last.base(), parts_.end(), "-")));
    parts_.erase(std::prev(last.base()));
    std::erase_if(parts_, [&](const std::string& part) { return &part != &parts_.front() && is_encoding(part); });
  }

  // Splits "v1.0.Q4_K_M".
  void split_at_dot() {
    for (std::size_t i = 0; i < parts_.size(); ++i)
      for (std::size_t dot = parts_[i].find('.'); dot != std::string::npos; dot = parts_[i].find('.', dot + 1))
        if (const std::string rest = parts_[i].substr(dot + 1); is_encoding(rest)) {
          fault(fmt::format("a dot, not a hyphen, before the encoding '{}'", rest));
          parts_[i].resize(dot);
          parts_.insert(parts_.begin() + static_cast<std::ptrdiff_t>(i) + 1, rest);
          break;
        }
  }

  void take_version() {
    static const Pattern kVersion = Pattern::compile("v\\d+(?:\\.\\d+)*").value();
    static const Pattern kLikeVersion = Pattern::compile("[vV]?\\d+(?:\\.\\d+)+|V\\d+").value();
    const std::size_t size = place_of_size();
    std::size_t at = parts_.size();
    for (std::size_t i = 1; i < parts_.size(); ++i)
      if (fits(parts_[i], kVersion)) at = i;
    for (std::size_t i = size; at == parts_.size() && i < parts_.size(); ++i)
      if (fits(parts_[i], kLikeVersion)) at = i;
    if (at == parts_.size()) return fault("no version");
    std::string version = parts_[at];
    if (!fits(version, kVersion)) {
      version = "v" + version.substr(version.front() == 'V' ? 1 : 0);
      fault(fmt::format("a version begins with v: '{}', not '{}'", version, parts_[at]));
    }
    made_.found.version = std::move(version);
    if (at + 1 < parts_.size() && made_.found.encoding && !is_behind_)
      fault(fmt::format("'{}' between the version and the encoding",
                        fmt::join(parts_.begin() + static_cast<std::ptrdiff_t>(at) + 1, parts_.end(), "-")));
    parts_.erase(parts_.begin() + static_cast<std::ptrdiff_t>(at));
  }

  // Returns the index of the size, or the number of parts.
  std::size_t place_of_size() const {
    static const Pattern kUsual = Pattern::compile("(?:\\d+x)?(?:\\d+\\.)?\\d+[KMBTQkmbtq]").value();
    static const Pattern kAny = Pattern::compile("(?:\\d+x)?(?:\\d+\\.)?\\d+[A-Za-z]").value();
    for (const Pattern* pattern : {&kUsual, &kAny})
      for (std::size_t i = 1; i < parts_.size(); ++i)
        if (fits(parts_[i], *pattern)) return i;
    return parts_.size();
  }

  void take_size() {
    static const Pattern kActive = Pattern::compile("[A-Za-z]+(?:\\d+\\.)?\\d+[A-Za-z]+").value();
    const std::size_t at = place_of_size();
    if (at == parts_.size()) return fault("no size, such as 7B");
    std::size_t end = at + 1;
    made_.found.size_label = parts_[at];
    if (end < parts_.size() && fits(parts_[end], kActive)) *made_.found.size_label += "-" + parts_[end++];
    const auto begin = parts_.begin() + static_cast<std::ptrdiff_t>(end);
    if (begin != parts_.end()) made_.found.finetune = fmt::format("{}", fmt::join(begin, parts_.end(), "-"));
    parts_.resize(at);
  }

  void take_base() {
    made_.found.base_name = fmt::format("{}", fmt::join(parts_, "-"));
    static const Pattern kPlain = Pattern::compile("[A-Za-z0-9\\s-]*").value();
    for (const std::string* text : {&made_.found.base_name, made_.found.finetune ? &*made_.found.finetune : nullptr})
      if (text && !fits(*text, kPlain))
        fault(fmt::format("characters other than letters, digits, spaces, and hyphens in {}", quoted_name(*text)));
    if (made_.found.base_name.empty()) fault("no base name");
  }

  void suggest() {
    const FileName& found = made_.found;
    std::string better;
    const auto add = [&](const std::optional<std::string>& part) {
      if (part) better += (better.empty() ? "" : "-") + *part;
    };
    add(found.sidecar);
    add(found.base_name);
    add(found.size_label);
    add(found.finetune);
    add(found.version.value_or("v1.0"));
    add(found.encoding);
    add(found.type);
    add(found.shard);
    better += kSuffix;
    if (parse_file_name(better)) made_.better = std::move(better);
  }

  static constexpr std::string_view kSuffix = ".gguf";
  std::string name_;
  Parts parts_;
  bool is_behind_ = false;  // parts follow the encoding
  NameFaults made_;
};

}  // namespace

NameFaults explain_file_name(std::string_view path) { return Explainer(path).explain(); }

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
