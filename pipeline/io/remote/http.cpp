#include "pipeline/io/remote/http.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <limits>
#include <memory>
#include <mutex>
#include <new>

#include "pipeline/core/digest.h"
#include "pipeline/core/installation.h"
#include "pipeline/core/text.h"
#include "pipeline/io/platform/files.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/remote/address.h"
#include "pipeline/io/remote/credentials.h"
#include "pipeline/io/remote/header.h"
#include "pipeline/io/remote/server_text.h"

namespace ggufmill::remote {

bool is_http_available() { return true; }

namespace {

constexpr std::size_t kMaxIdle = 16;           // connections are kept by their handles
constexpr std::size_t kMaxHeaders = 100;       // headers kept
constexpr std::size_t kMaxHeaderLines = 1000;  // including those of interim responses (1xx)
constexpr long kPieceBytes = 512 << 10;        // maximum that libcurl passes to the sink, or reads, at a time

struct FreeEasy {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
struct FreeUrl {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};
using Easy = std::unique_ptr<CURL, FreeEasy>;
using List = std::unique_ptr<curl_slist, FreeList>;

// Idle handles with their open connections. Shared by the whole process, since connections are; the data read does not
// depend on which handles exist.
class IdleHandles {
 public:
  static IdleHandles& all() {
    static auto* const handles = new IdleHandles;  // never destroyed: threads may outlive main()
    return *handles;
  }
  Easy take() {
    {
      const std::scoped_lock lock(mutex_);
      if (!idle_.empty()) {
        Easy handle = std::move(idle_.back());
        idle_.pop_back();
        return handle;
      }
    }
    Easy handle(curl_easy_init());
    if (!handle) throw std::bad_alloc();
    return handle;
  }
  void give_back(Easy handle) {
    curl_easy_reset(handle.get());  // connections stay open
    const std::scoped_lock lock(mutex_);
    if (idle_.size() < kMaxIdle) idle_.push_back(std::move(handle));
  }

 private:
  IdleHandles() { curl_global_init(CURL_GLOBAL_DEFAULT); }
  std::mutex mutex_;
  std::vector<Easy> idle_;
};

// State shared by the callbacks of a request.
struct Exchange {
  CURL* handle;
  const Request& request;
  const BodySink& sink;
  Answer answer{};
  bool is_enough = false;
  bool no_memory = false;
  std::size_t header_lines = 0;
  std::uint64_t sent = 0;

  // Reads the header values that libcurl itself parses.
  void read_info() {
    curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &answer.status);
    if (curl_off_t when = 0; curl_easy_getinfo(handle, CURLINFO_FILETIME_T, &when) == CURLE_OK && when > 0)
      answer.modified = when;
  }
};

std::size_t on_header(char* data, std::size_t, std::size_t bytes, void* user) try {
  auto& exchange = *static_cast<Exchange*>(user);
  auto& answer = exchange.answer;
  if (++exchange.header_lines > kMaxHeaderLines) return 0;
  const std::string_view line(data, bytes);
  if (line.starts_with("HTTP/")) answer.headers.clear();  // discards the headers of an earlier response: 100 Continue
  const std::size_t colon = line.find(':');
  if (colon == line.npos || answer.headers.size() >= kMaxHeaders) return bytes;
  answer.headers.emplace_back(lower_case(line.substr(0, colon)), trimmed(line.substr(colon + 1)));
  return bytes;
} catch (...) {
  static_cast<Exchange*>(user)->no_memory = true;
  return 0;
}

std::size_t on_body(char* data, std::size_t, std::size_t bytes, void* user) {
  auto& exchange = *static_cast<Exchange*>(user);
  try {
    exchange.read_info();
    if (exchange.sink(exchange.answer, std::as_bytes(std::span(data, bytes)))) return bytes;
    exchange.is_enough = true;
  } catch (...) {
    exchange.no_memory = true;
  }
  return CURL_WRITEFUNC_ERROR;
}

std::size_t on_read(char* into, std::size_t, std::size_t most, void* user) {
  auto& exchange = *static_cast<Exchange*>(user);
  const RequestBody& body = *exchange.request.body;
  const std::size_t bytes = std::min<std::uint64_t>(most, body.bytes - exchange.sent);
  if (bytes == 0) return 0;
  try {
    if (!body.read(exchange.sent, std::as_writable_bytes(std::span(into, bytes)))) return CURL_READFUNC_ABORT;
  } catch (...) {
    exchange.no_memory = true;
    return CURL_READFUNC_ABORT;
  }
  exchange.sent += bytes;
  return bytes;
}

int on_seek(void* user, curl_off_t offset, int origin) {
  if (origin != SEEK_SET || offset < 0) return CURL_SEEKFUNC_CANTSEEK;
  static_cast<Exchange*>(user)->sent = static_cast<std::uint64_t>(offset);
  return CURL_SEEKFUNC_OK;
}

int on_progress(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  const Request& request = static_cast<Exchange*>(user)->request;
  const auto is_set = [](const std::atomic<bool>* flag) { return flag && *flag; };
  return is_set(request.stop) || is_set(request.abandoned) ? 1 : 0;
}

Answer::Outcome outcome_of(CURLcode code) {
  switch (code) {
    case CURLE_OK:
      return Answer::Outcome::kAnswered;
    case CURLE_ABORTED_BY_CALLBACK:
      return Answer::Outcome::kStopped;
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_AGAIN:
      return Answer::Outcome::kBroken;
    default:
      return Answer::Outcome::kFailed;
  }
}

bool is_of_certificates(CURLcode code) {
  return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE || code == CURLE_SSL_CERTPROBLEM ||
         code == CURLE_SSL_ISSUER_ERROR || code == CURLE_SSL_CRL_BADFILE || code == CURLE_SSL_INVALIDCERTSTATUS;
}

// For some errors, libcurl's message contains an address, such as that of a proxy with its password.
bool has_plain_message(CURLcode code, std::string_view words) {
  if (words.empty() || words.find('@') != words.npos || words.find("://") != words.npos) return false;
  return code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_CONNECT || code == CURLE_OPERATION_TIMEDOUT ||
         code == CURLE_PARTIAL_FILE || code == CURLE_RECV_ERROR || code == CURLE_SEND_ERROR ||
         code == CURLE_SSL_CONNECT_ERROR || code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE;
}

// Debian and Arch; Fedora and RHEL, old and new; SUSE; Alpine; FreeBSD.
constexpr const char* kCertificateFiles[] = {
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/usr/local/share/certs/ca-root-nss.crt",
};

std::string installed_certificates() {
  const auto is_file = [](const std::string& path) {
    return Descriptor(kernel_calls().open(kCurrentFolder, path.c_str(), kOpenRead | kOpenNoWaiting, 0)).get() >= 0;
  };
  const char* const built_in = curl_version_info(CURLVERSION_NOW)->cainfo;
  if (built_in && is_file(built_in)) return built_in;
  for (const char* const file : kCertificateFiles)
    if (is_file(file)) return file;
  const std::string own = own_data_folder() + "/certificates.pem";
  return is_file(own) ? own : std::string();
}

void set_certificates(CURL* handle) {
  if (const std::string file = certificate_file(); !file.empty())
    curl_easy_setopt(handle, CURLOPT_CAINFO, file.c_str());
  if (const std::string folder = environment("SSL_CERT_DIR"); !folder.empty())
    curl_easy_setopt(handle, CURLOPT_CAPATH, folder.c_str());
}

List set_headers(CURL* handle, const Request& request) {
  List list;
  const auto add = [&](const std::string& header) {
    curl_slist* longer = curl_slist_append(list.get(), header.c_str());
    if (!longer) throw std::bad_alloc();
    (void)list.release();
    list.reset(longer);
  };
  add("Accept-Encoding: identity");  // offsets refer to the unencoded bytes
  for (const std::string& header : request.headers) {
    const std::size_t colon = header.find(':');
    const bool has_value = !trimmed(std::string_view(header).substr(colon + 1)).empty();
    add(has_value ? header : header.substr(0, colon) + ";");  // libcurl's form of a header without a value
  }
  if (request.key)
    for (const std::string& header :
         signing_headers(request.method, request.url, request.headers,
                         request.body ? request.body->hash : sha256_hex(""), *request.key, std::time(nullptr)))
      add(header);
  add("Expect:");  // no extra round trip before a body
  if (request.method == "POST") add("Content-Type:");
  curl_easy_setopt(handle, CURLOPT_HTTPHEADER, list.get());
  return list;
}

void set_method(CURL* handle, Exchange& exchange) {
  const Request& request = exchange.request;
  if (request.method == "GET") return;
  if (request.body) {
    curl_easy_setopt(handle, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(handle, CURLOPT_UPLOAD_BUFFERSIZE, kPieceBytes);
    curl_easy_setopt(handle, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(request.body->bytes));
    curl_easy_setopt(handle, CURLOPT_READFUNCTION, on_read);
    curl_easy_setopt(handle, CURLOPT_READDATA, &exchange);
    curl_easy_setopt(handle, CURLOPT_SEEKFUNCTION, on_seek);
    curl_easy_setopt(handle, CURLOPT_SEEKDATA, &exchange);
  } else if (request.method == "POST") {
    curl_easy_setopt(handle, CURLOPT_POSTFIELDS, "");
    curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE, 0L);
  }
  curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, request.method.c_str());
}

// Returns why a request may not be sent; empty if it may.
std::string why_refused(const Request& request) {
  const auto place = place_of_url(request.url);
  if (!place) return "the address is not a complete URL";
  if (place->scheme == "https") {  // libcurl would wait for the other end of a pipe
    const std::string file = environment({"CURL_CA_BUNDLE", "SSL_CERT_FILE"});
    std::error_code error;
    if (!file.empty() && fs::exists(file, error) && !fs::is_regular_file(file, error))
      return fmt::format("the certificates in {} are not a regular file", quoted_name(file));
  }
  for (const std::string& header : request.headers)
    if (std::string why = why_not_sent(std::string_view(header)); !why.empty()) return why;
  return "";
}

// A token may be sent in the clear to this machine only, so not through a proxy.
bool is_token_in_clear(const Request& request) {
  const auto place = place_of_url(request.url);
  return place && place->scheme == "http" && is_this_machine(*place) &&
         std::ranges::any_of(request.headers, [](const std::string& header) {
           return same_word(std::string_view(header).substr(0, header.find(':')), "Authorization");
         });
}

}  // namespace

std::chrono::milliseconds Patience::total(std::uint64_t bytes) const {
  return connect + stall + answer + std::chrono::seconds(bytes / least_speed);
}

std::string_view Answer::header(std::string_view name) const {
  const auto found = std::ranges::find(headers, name, [](const auto& each) { return std::string_view(each.first); });
  return found == headers.end() ? std::string_view() : std::string_view(found->second);
}

Answer send(const Request& request, const BodySink& sink) {
  if (std::string why = why_refused(request); !why.empty())
    return {.problem = fmt::format("nothing was sent: {}", why)};
  // These outlive the handle, which refers to them until it is reset or cleaned up.
  Exchange exchange{nullptr, request, sink};
  char words[CURL_ERROR_SIZE] = "";
  List headers;
  Easy easy = IdleHandles::all().take();
  CURL* const handle = exchange.handle = easy.get();
  curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, words);
  curl_easy_setopt(handle, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  // one connection per request, so that ranges are read in parallel
  curl_easy_setopt(handle, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
  if (request.is_once) curl_easy_setopt(handle, CURLOPT_FRESH_CONNECT, 1L);
  curl_easy_setopt(handle, CURLOPT_USERAGENT, "ggufmill/" GGUFMILL_VERSION);
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  curl_easy_setopt(handle, CURLOPT_FILETIME, 1L);
  curl_easy_setopt(handle, CURLOPT_BUFFERSIZE, kPieceBytes);
  curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(request.patience.connect.count()));
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, static_cast<long>(request.patience.stall_speed));
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_TIME, static_cast<long>(request.patience.stall.count()));
  const auto total = request.patience.total(request.answer_bytes + (request.body ? request.body->bytes : 0)).count();
  curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS,
                   static_cast<long>(std::min<std::int64_t>(total, std::numeric_limits<long>::max())));
  if (request.is_direct || is_token_in_clear(request)) curl_easy_setopt(handle, CURLOPT_NOPROXY, "*");
  curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, on_header);
  curl_easy_setopt(handle, CURLOPT_HEADERDATA, &exchange);
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, on_body);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &exchange);
  curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, on_progress);
  curl_easy_setopt(handle, CURLOPT_XFERINFODATA, &exchange);
  curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
  set_certificates(handle);
  set_method(handle, exchange);
  headers = set_headers(handle, request);

  const CURLcode code = curl_easy_perform(handle);
  Answer& answer = exchange.answer;
  if (code == CURLE_OUT_OF_MEMORY || exchange.no_memory) throw std::bad_alloc();
  answer.outcome = exchange.is_enough ? Answer::Outcome::kAnswered : outcome_of(code);
  if (exchange.header_lines > kMaxHeaderLines) {
    answer.outcome = Answer::Outcome::kEndless;
    answer.problem = fmt::format("the server sent more than {} header lines", kMaxHeaderLines);
  }
  if (answer.outcome == Answer::Outcome::kBroken || answer.outcome == Answer::Outcome::kFailed)
    answer.problem = has_plain_message(code, words) ? masked(words) : curl_easy_strerror(code);
  answer.is_certificate_refused = is_of_certificates(code);
  answer.connected = code != CURLE_COULDNT_CONNECT && code != CURLE_COULDNT_RESOLVE_HOST &&
                     code != CURLE_COULDNT_RESOLVE_PROXY && code != CURLE_SSL_CONNECT_ERROR;
  exchange.read_info();
  if (const char* url = nullptr; curl_easy_getinfo(handle, CURLINFO_REDIRECT_URL, &url) == CURLE_OK && url)
    answer.redirect = url;
  if (curl_off_t wait = 0; curl_easy_getinfo(handle, CURLINFO_RETRY_AFTER, &wait) == CURLE_OK)
    answer.retry_after = std::chrono::seconds(std::clamp<curl_off_t>(wait, 0, 1 << 30));
  IdleHandles::all().give_back(std::move(easy));
  return std::move(answer);
}

// Uses the same variables as the curl program; the library itself does not read them.
std::string certificate_file() {
  if (const std::string file = environment({"CURL_CA_BUNDLE", "SSL_CERT_FILE"}); !file.empty()) return file;
  static const std::string installed = installed_certificates();
  return installed;
}

std::string http_libraries() {
  const std::string text = curl_version();  // "libcurl/7.88.1 ..."
  return text.substr(text.find('/') + 1);
}

std::optional<UrlPlace> place_of_url(const std::string& url) {
  if (std::ranges::any_of(url, [](char c) { return c <= 0x20 || c >= 0x7f || c == '\\'; })) return {};
  const std::unique_ptr<CURLU, FreeUrl> parsed(curl_url());
  if (!parsed) throw std::bad_alloc();
  if (curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK) return {};
  const auto part = [&](CURLUPart which) -> std::optional<std::string> {
    char* text = nullptr;
    if (curl_url_get(parsed.get(), which, &text, CURLU_DEFAULT_PORT) != CURLUE_OK) return {};
    const std::unique_ptr<char, decltype(&curl_free)> owner(text, curl_free);
    return lower_case(text);
  };
  const auto scheme = part(CURLUPART_SCHEME), host = part(CURLUPART_HOST), port = part(CURLUPART_PORT);
  if (!scheme || !host || !port) return {};
  return UrlPlace{*scheme, *host, *port, part(CURLUPART_USER) || part(CURLUPART_PASSWORD)};
}

std::string origin_of(const std::string& url) {
  const auto place = place_of_url(url);
  return place ? fmt::format("{}://{}:{}", place->scheme, place->host, place->port) : "";
}

bool is_this_machine(const UrlPlace& place) {
  std::string_view rest = place.host;
  if (rest == "localhost" || rest == "[::1]") return true;
  for (int i = 0; i < 4; ++i) {
    unsigned number = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    const auto digits = static_cast<std::size_t>(end - rest.data());
    if (error != std::errc() || digits > 3 || number > 255 || (digits > 1 && rest[0] == '0')) return false;
    if (i == 0 && number != 127) return false;
    rest.remove_prefix(digits);
    if (i < 3 && !rest.starts_with('.')) return false;
    rest.remove_prefix(i < 3 ? 1 : 0);
  }
  return rest.empty();
}

}  // namespace ggufmill::remote
