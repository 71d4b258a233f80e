#include "pipeline/io/remote/server_text.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include "pipeline/core/text.h"
#include "pipeline/io/remote/address.h"

namespace ggufmill::remote {
namespace {

constexpr std::size_t kLongestText = 4096;  // bytes of a text that are examined and may be shown
constexpr std::size_t kTellingPiece = 8;    // characters of a secret that must not be shown
constexpr std::size_t kMinCredential = 16;  // characters of a word that is a credential, not prose
constexpr std::size_t kMaxSecrets = 64;     // forms kept; a process has a few
constexpr std::string_view kMask = "...";
constexpr std::string_view kHubToken = "hf_";  // how tokens of the hub begin

bool is_one_of(std::string_view characters, char c) { return characters.find(c) != characters.npos; }

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

// Ends a value in prose, JSON, XML, a header, or a query.
bool is_end(char c) { return static_cast<unsigned char>(c) <= ' ' || is_one_of("\"'<>,;&)}]\\", c); }

// The secrets of the process, in lower case.
class Secrets {
 public:
  static Secrets& all() {
    static auto* const secrets = new Secrets;  // never destroyed: threads may outlive main()
    return *secrets;
  }
  void add(std::string secret) {
    const std::scoped_lock lock(mutex_);
    if (secret.empty() || std::ranges::count(secrets_, secret) != 0) return;
    if (secrets_.size() == kMaxSecrets) secrets_.erase(secrets_.begin());
    secrets_.push_back(std::move(secret));
  }
  std::vector<std::string> list() {
    const std::scoped_lock lock(mutex_);
    return secrets_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> secrets_;
};

// A text, and which of its characters are hidden.
class Masking {
 public:
  explicit Masking(std::string_view text)
      : text_(text.substr(0, kLongestText)), lower_(lower_case(text_)), hidden_(text_.size()) {}

  void hide_secrets() {
    for (const std::string& secret : Secrets::all().list())
      secret.size() < kTellingPiece ? hide_word(secret) : hide_pieces(secret);
  }
  void hide_credentials() {
    for (std::size_t at = 0; (at = text_.find(kHubToken, at)) != text_.npos; at += kHubToken.size())
      hide_word_at(at + kHubToken.size(), kTellingPiece);
    for (const std::string_view scheme : {"bearer", "basic"})
      for (std::size_t at = 0; (at = lower_.find(scheme, at)) != lower_.npos;) {
        at += scheme.size();
        std::size_t begin = at;
        while (begin < text_.size() && (text_[begin] == ' ' || text_[begin] == ':' || text_[begin] == '+')) ++begin;
        if (begin != at) hide_value(begin, kMinCredential);
      }
  }
  // Values of names such as `X-Amz-Signature=`, `"token": ` and `<SecretKey>`.
  void hide_named() {
    constexpr std::string_view kNames[] = {"signature", "sig",        "token",     "secret",     "password",
                                           "policy",    "credential", "secretkey", "key-pair-id"};
    for (std::size_t at = 0; at < text_.size(); ++at) {
      std::size_t begin = at + 1;
      if (lower_.compare(at, 3, "%3d") == 0)
        begin = at + 3;
      else if (text_[at] != '=' && text_[at] != ':' && text_[at] != '>')
        continue;
      std::size_t name_end = at;
      while (name_end > 0 && is_one_of(" \"'", text_[name_end - 1])) --name_end;
      const std::string_view before = std::string_view(lower_).substr(0, name_end);
      if (std::ranges::none_of(kNames, [&](std::string_view name) { return before.ends_with(name); })) continue;
      const bool is_assigned = text_[at] != ':' && text_[at] != '>';
      while (begin < text_.size() && is_one_of(" \"'", text_[begin])) ++begin;
      hide_value(begin, is_assigned ? 1 : kMinCredential);
    }
  }
  void hide_in_urls() {
    for (std::size_t at = 0; (at = text_.find("://", at)) != text_.npos;) {
      at += 3;
      std::size_t end = at;
      while (end < text_.size() && !(is_end(text_[end]) && text_[end] != '&')) ++end;
      const std::string_view url = std::string_view(text_).substr(at, end - at);
      const std::size_t user = url.substr(0, url.find_first_of("/?#")).rfind('@');
      if (user != url.npos) hide(at, at + user);
      if (const std::size_t query = url.find('?'); query != url.npos) hide(at + query + 1, end);
    }
  }
  std::string shown() const {
    std::string out;
    for (std::size_t i = 0; i < text_.size(); ++i)
      if (!hidden_[i])
        out += text_[i];
      else if (i == 0 || !hidden_[i - 1])
        out += kMask;
    return out;
  }

 private:
  void hide(std::size_t begin, std::size_t end) { std::fill(hidden_.begin() + begin, hidden_.begin() + end, true); }
  void hide_word_at(std::size_t begin, std::size_t least) {
    std::size_t end = begin;
    while (end < text_.size() && is_word(text_[end])) ++end;
    if (end - begin >= least) hide(begin, end);
  }
  void hide_value(std::size_t begin, std::size_t least) {
    std::size_t end = begin;
    while (end < text_.size() && !is_end(text_[end])) ++end;
    if (end - begin >= least) hide(begin, end);
  }
  // Hides a secret that is too short to be recognized within a word.
  void hide_word(const std::string& secret) {
    for (std::size_t at = 0; (at = lower_.find(secret, at)) != lower_.npos; at += secret.size()) {
      const std::size_t end = at + secret.size();
      if ((at == 0 || !is_word(text_[at - 1])) && (end == text_.size() || !is_word(text_[end]))) hide(at, end);
    }
  }
  void hide_pieces(const std::string& secret) {
    for (std::size_t begin = 0; begin + kTellingPiece <= secret.size(); ++begin)
      for (std::size_t at = 0; (at = lower_.find(secret.data() + begin, at, kTellingPiece)) != lower_.npos; ++at)
        hide(at, at + kTellingPiece);
  }

  std::string text_, lower_;
  std::vector<bool> hidden_;
};

}  // namespace

void remember_secret(std::string_view secret) {
  Secrets::all().add(lower_case(secret));
  Secrets::all().add(lower_case(percent_encoded(secret)));
}

std::string masked(std::string_view text) {
  Masking masking(text);
  masking.hide_secrets();
  masking.hide_credentials();
  masking.hide_named();
  masking.hide_in_urls();
  return masking.shown();
}

bool has_secret(std::string_view text) {
  const std::string lower = lower_case(text);
  return std::ranges::any_of(Secrets::all().list(), [&](const std::string& secret) {
    return secret.size() >= kTellingPiece && lower.find(secret) != lower.npos;
  });
}

std::string quoted_answer(std::string_view text, std::size_t width) { return quoted_name(masked(text), width); }

}  // namespace ggufmill::remote
