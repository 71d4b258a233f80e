#include "pipeline/api/publish/card/job_text.h"

#include <algorithm>

namespace ggufmill {
namespace {

constexpr std::string_view kBlank = " \t", kSeparators = "/\\";

bool is_in(char c, std::string_view set) { return set.find(c) != set.npos; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Returns true if a path with a folder of this machine begins here.
bool begins_path(std::string_view text) {
  if (text.starts_with("file://")) return true;
  if (text.starts_with("\\\\") || text.starts_with("../") || text.starts_with("..\\")) return true;
  if (text.size() > 2 && is_letter(text[0]) && text[1] == ':' && is_in(text[2], kSeparators)) return true;
  const std::size_t separator = text.find('/');
  if (text.starts_with("~") && separator != text.npos)
    return text.substr(0, separator).find_first_of(" \t'\",") == text.npos;
  return separator == 0 && text.size() > 1 && !is_in(text[1], "/ \t");
}

// Returns the last component of a path; the path itself if it has only one.
std::string_view last_component(std::string_view path) {
  const std::size_t last = path.find_last_not_of(kSeparators);
  if (last == path.npos) return path;
  path = path.substr(0, last + 1);
  const std::size_t separator = path.find_last_of(kSeparators);
  return separator == path.npos || separator == 0 ? path : path.substr(separator + 1);
}

// One line of a pipeline file. A string in quotes may begin on an earlier one: `quote` is its quote, or 0.
class Line {
 public:
  Line(std::string_view text, char& quote) : text_(text), quote_(quote) {}

  std::string shortened() {
    while (at_ < text_.size()) {
      if (can_begin() && begins_path(text_.substr(at_))) {
        const std::size_t end = end_of_path();
        out_ += last_component(text_.substr(at_, end - at_));
        at_ = end;
      } else {
        add_character();
      }
    }
    return std::move(out_);
  }

 private:
  char before() const { return at_ == 0 ? ' ' : text_[at_ - 1]; }
  bool can_begin() const { return is_in(before(), " \t'\"[{(,=:|<>;"); }

  void add_character() {
    const char c = text_[at_++];
    out_ += c;
    if (is_comment_) return;
    if (quote_ != 0)
      quote_ = c == quote_ ? '\0' : quote_;
    else if (c == '#' && (at_ == 1 || is_in(text_[at_ - 2], kBlank)))
      is_comment_ = true;
    else if (is_in(c, "'\"") && begins_value(at_ - 1))
      quote_ = c;
  }

  // Returns true if a value can begin at a byte: after the start of the line, a key, or punctuation of a list or map.
  bool begins_value(std::size_t at) const {
    const std::size_t last = at == 0 ? text_.npos : text_.find_last_not_of(kBlank, at - 1);
    return last == text_.npos || is_in(text_[last], ":-[{,");
  }

  std::size_t end_of_path() const {
    const auto first_of = [&](std::string_view set) { return std::min(text_.find_first_of(set, at_), text_.size()); };
    if (quote_ != 0 && before() == quote_) return first_of(std::string_view(&quote_, 1));
    if (is_comment_ || quote_ != 0 || !begins_value(at_)) return first_of(" \t'\",;)]}");
    const std::size_t end = std::min(first_of("'\",]}"), text_.find(" #", at_));
    return text_.find_last_not_of(kBlank, end - 1) + 1;
  }

  std::string_view text_;
  char& quote_;
  std::size_t at_ = 0;
  bool is_comment_ = false;
  std::string out_;
};

}  // namespace

std::string without_folders(std::string_view job) {
  std::string out;
  char quote = 0;
  for (std::size_t at = 0; at < job.size();) {
    const std::size_t end = std::min(job.find('\n', at), job.size());
    out += Line(job.substr(at, end - at), quote).shortened();
    if (end < job.size()) out += '\n';
    at = end + 1;
  }
  return out;
}

}  // namespace ggufmill
