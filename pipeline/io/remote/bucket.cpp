#include "pipeline/io/remote/bucket.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

#include "pipeline/core/digest.h"
#include "pipeline/core/text.h"
#include "pipeline/io/output_store.h"
#include "pipeline/io/output_target.h"
#include "pipeline/io/remote/header.h"
#include "pipeline/io/remote/list_bounds.h"
#include "pipeline/io/remote/part_map.h"
#include "pipeline/io/remote/server_text.h"
#include "pipeline/io/remote/written_time.h"
#include "pipeline/io/remote/xml.h"

namespace ggufmill::remote {
namespace {

constexpr std::size_t kMaxReply = 4 << 20;  // of an XML body; a list of 1000 parts has some 200 KiB
constexpr std::size_t kMaxName = 4096;      // of an upload or an ETag
constexpr std::string_view kTokenHeader = "x-amz-meta-ggufmill-token";
// A server may take minutes to put an object together.
constexpr std::chrono::seconds kCompletionStall{300};
constexpr std::string_view kUnreadable = "the server does not let this user read the bucket";
constexpr std::string_view kNotOfBucket = "the answer is not that of a bucket";

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

// Returns 0 for anything but a decimal number that fits.
template <class Number>
Number number_of(std::string_view text) {
  text = trimmed(text);
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : 0;
}

// Returns true if `name`, of an upload or an ETag, may be stored and sent back.
bool is_usable_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxName && is_header_value(name) && !has_secret(name);
}

// Encodes a value in a query.
std::string query_encoded(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (c == '/')
      out += "%2F";
    else
      out += percent_encoded({&c, 1});
  return out;
}

// Returns a code from a server that may appear in messages, or nothing.
std::string plain_code(std::string_view code) {
  code = trimmed(code);
  return code.size() <= 64 && is_plain_name(code) && masked(code) == code ? std::string(code) : "";
}

RequestBody body_of(std::string_view text, std::string hash) {
  return {text.size(), std::move(hash), [text](std::uint64_t offset, std::span<std::byte> into) {
            std::memcpy(into.data(), text.data() + offset, into.size());
            return true;
          }};
}

std::string md5_of(std::string_view text) {
  Digest md5(DigestKind::kMd5);
  md5.add(text);
  return md5.base64();
}

bool is_one_of(std::string_view code, std::initializer_list<std::string_view> codes) {
  return std::ranges::count(codes, code) != 0;
}

// Returns the size of an object, from the answer to a request for its first byte; nullopt if the server does not say.
std::optional<std::uint64_t> size_of(const Answer& answer) {
  const std::string_view range = answer.header("content-range");
  if (answer.status == 416 && range.empty()) return 0;  // the object has no first byte
  const std::string_view size = answer.status == 200 ? answer.header("content-length")
                                                     : range.substr(std::min(range.size(), range.rfind('/') + 1));
  const auto number = number_of<std::uint64_t>(size);
  return number != 0 || size == "0" ? std::optional(number) : std::nullopt;
}

// Returns what a document names instead of the bucket, the key or the upload of the request; empty: nothing. Documents
// need not name them.
std::string other_name(const XmlElement& document, const Address& address, std::string_view upload) {
  const std::string_view bucket = trimmed(document.text_of("Bucket")), key = trimmed(document.text_of("Key")),
                         id = trimmed(document.text_of("UploadId"));
  const auto other = [](std::string_view what, std::string_view name) {
    return fmt::format("the answer names the {} {}", what, quoted_answer(name));
  };
  // Ceph writes TENANT:BUCKET. For the alias of an access point, S3 names the bucket behind it.
  if (!bucket.empty() && bucket != address.place && !bucket.ends_with(":" + address.place) &&
      !address.place.ends_with("-s3alias"))
    return other("bucket", bucket);
  if (!key.empty() && key != trimmed(address.path) && key != percent_encoded(address.path)) return other("key", key);
  if (!id.empty() && !upload.empty() && id != upload) return other("upload", id);
  return {};
}

// Returns the header with the content type of an object, by its name: clients, and browsers that show a folder of
// results, go by it.
std::string content_type_header(std::string_view key) {
  constexpr std::pair<std::string_view, std::string_view> kTypes[] = {
      {".json", "application/json"},         {".md", "text/markdown; charset=utf-8"},
      {".html", "text/html; charset=utf-8"}, {".sha256", "text/plain; charset=utf-8"},
      {".txt", "text/plain; charset=utf-8"}, {".yaml", "application/yaml"},
  };
  const auto known = std::ranges::find_if(kTypes, [&](const auto& each) { return key.ends_with(each.first); });
  return fmt::format("Content-Type: {}", known == std::end(kTypes) ? "application/octet-stream" : known->second);
}

// Returns true for an error that an earlier attempt, which succeeded, may have caused.
bool is_unsure(long status) { return status == 404 || status == 409 || status == 412; }

}  // namespace

ObjectToken ObjectToken::random() {
  std::random_device random;
  const auto number = [&] { return std::uint64_t{random()} << 32 | random(); };
  return {number(), number()};
}

std::optional<ObjectToken> ObjectToken::parse(std::string_view text) {
  ObjectToken token;
  const auto read = [](std::string_view digits, std::uint64_t& into) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), into, 16);
    return error == std::errc() && end == digits.data() + digits.size();
  };
  if (text.size() != 32 || !read(text.substr(0, 16), token.high) || !read(text.substr(16), token.low)) return {};
  return token;
}

std::string ObjectToken::text() const { return fmt::format("{:016x}{:016x}", high, low); }

struct Bucket::Call {
  std::string what;  // for messages: "cannot start the upload"
  std::string method = "GET";
  std::string query{};
  std::vector<std::string> headers{};
  const RequestBody* body = nullptr;
  // The root of the document that a success consists of; empty: a success has no document.
  std::string_view result{};
  std::string upload{};          // that the document must name, if it names one; empty: any
  bool has_etag = false;         // a success has an ETag, in its document or else in a header
  bool is_download = false;      // a success is the object, or a range of it
  bool is_about_bucket = false;  // not about the object
  bool is_once = false;          // as in Request
  std::optional<std::chrono::seconds> stall{};
};

struct Bucket::Reply {
  Answer answer{};
  std::string text{};                    // beginning of the body
  std::optional<XmlElement> document{};  // the body, if it is XML
  std::string code{};                    // S3's error code; empty: none
  bool is_expected = false;              // as Call says that a success is
  std::string flaw{};                    // of a document that has the right root; empty: none
  unsigned attempts = 1;

  bool is_answered() const { return answer.outcome == Answer::Outcome::kAnswered; }
  bool has_success_status() const { return is_answered() && answer.status / 100 == 2; }
  // A status alone does not mean success: any server in between may answer 200, and a bucket answers 200 before it
  // knows the result of a request that takes long.
  bool is_ok() const { return has_success_status() && is_expected; }
  void read_body(const Call& call, const Address& address);
  // A reply to a request that may be repeated.
  bool may_pass() const {
    if (!is_answered()) return remote::may_pass(answer);
    if (is_one_of(code, {"QuotaExceeded", "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded"})) return false;
    if (is_one_of(code, {"SlowDown", "InternalError", "ServiceUnavailable", "RequestTimeout", "BadDigest",
                         "IncompleteBody", "OperationAborted", "ConditionalRequestConflict"}))
      return true;
    return answer.status / 100 != 2 && answer.status != 507 && remote::may_pass(answer);
  }
};

void Bucket::Reply::read_body(const Call& call, const Address& address) {
  if (has_success_status() && call.is_download) {
    is_expected = answer.status == 200 || answer.status == 206;
    return;
  }
  document = parse_xml(text);
  const XmlElement* const error = !document                   ? nullptr
                                  : document->name == "Error" ? &*document
                                                              : document->child("Error");
  if (error) code = plain_code(error->text_of("Code"));
  if (error) return;
  if (call.result.empty()) {
    is_expected = trimmed(text).empty() && (!call.has_etag || is_usable_name(answer.header("etag")));
    return;
  }
  if (!document || document->name != call.result) return;
  flaw = other_name(*document, address, call.upload);
  if (flaw.empty() && call.has_etag && !is_usable_name(trimmed(document->text_of("ETag"))))
    flaw = "the answer has no valid ETag";
  is_expected = flaw.empty();
}

Result<Bucket> Bucket::open(const std::string& path) {
  BOOST_OUTCOME_TRY(Address address, s3().parse(path));
  if (!is_http_available()) {
    Error error = usage_error("this ggufmill was built without libcurl and cannot write to servers",
                              "install a build with libcurl, or write a local file");
    error.where = address.text;
    return error;
  }
  BOOST_OUTCOME_TRY(Access access, s3().access_to(address));
  return Bucket(std::move(address), std::move(access));
}

Result<Bucket::Reply> Bucket::ask_once(const Call& call, const Settings& settings) const {
  Request request{access_.url,   call.headers,       {},          settings.patience,
                  settings.stop, settings.abandoned, call.method, call.body};
  if (access_.keys) {
    BOOST_OUTCOME_TRY(request.key, access_.keys->now(settings.stop));
  }
  if (call.is_about_bucket) request.url.resize(request.url.size() - percent_encoded(address_.path).size());
  if (!call.query.empty()) request.url += "?" + call.query;
  request.is_once = call.is_once;
  if (call.stall) request.patience.stall = *call.stall;
  request.answer_bytes = kMaxReply;
  Reply reply;
  const auto take = [&](const Answer&, std::span<const std::byte> piece) {
    const std::size_t bytes = std::min(piece.size(), kMaxReply - reply.text.size());
    reply.text.append(reinterpret_cast<const char*>(piece.data()), bytes);
    return bytes == piece.size();
  };
  reply.answer = send(request, take);
  if (!reply.is_answered()) return reply;
  if (const std::string date(reply.answer.header("date")); !date.empty()) *server_time_ = seconds_of_http_date(date);
  reply.read_body(call, address_);
  return reply;
}

// Returns the first reply that is final: a success, or a permanent failure.
Result<Bucket::Reply> Bucket::ask(const Call& call, const Settings& settings) const {
  Attempts attempts(address_, settings);
  for (unsigned number = 1;; ++number) {
    if (settings.stopped()) return interrupted();
    BOOST_OUTCOME_TRY(Reply reply, ask_once(call, settings));
    if (reply.answer.outcome == Answer::Outcome::kStopped) return interrupted();
    reply.attempts = number;
    if (reply.is_ok() || !reply.may_pass()) return reply;
    Status waited = attempts.wait_after(reply.answer);
    if (waited) continue;
    Error error = std::move(waited).error();
    if (error.code != ExitCode::kTransient) return error;
    error.what = fmt::format("{}: {}", call.what, error.what);
    if (!reply.code.empty()) error.what += fmt::format(" ({})", reply.code);
    return error;
  }
}

Error Bucket::malformed(const Call& call, const Reply& reply, std::string why) const {
  if (why.empty()) why = reply.flaw;
  const std::string expected = !call.result.empty() ? fmt::format("a complete <{}>", call.result)
                               : call.has_etag      ? "an ETag and no content"
                               : call.is_download   ? "the object"
                                                    : "no content";
  const std::string found = reply.document                ? "<" + printable(masked(reply.document->name)) + ">"
                            : trimmed(reply.text).empty() ? "nothing"
                                                          : quoted_answer(trimmed(reply.text), 60);
  if (why.empty())
    why = fmt::format("the server answered {} with {}; expected: {}", reply.answer.status, found, expected);
  return {ExitCode::kIo, address_.text, fmt::format("{}: {}", call.what, kNotOfBucket), std::move(why),
          "check the endpoint (AWS_ENDPOINT_URL_S3), and whether a proxy or a login page answers instead"};
}

Error Bucket::refused(const Call& call, const Reply& reply) const {
  const Answer& answer = reply.answer;
  if (!reply.is_answered()) {
    Error error = refusal(address_, answer, access_);
    error.code = ExitCode::kIo;
    error.what = fmt::format("{}: {}", call.what, error.what);
    return error;
  }
  const auto error = [&](ExitCode code, std::string why, std::string help) {
    const std::string said = fmt::format("the server answered {}{}", answer.status,
                                         reply.code.empty() ? "" : fmt::format(" ({})", reply.code));
    return Error{code, address_.text, fmt::format("{}: {}", call.what, why.empty() ? said : why),
                 why.empty() ? "" : said, std::move(help)};
  };
  const std::string& code = reply.code;
  if (reply.has_success_status() && code.empty()) return malformed(call, reply);
  if (answer.status >= 300 && answer.status < 400 && answer.status != 304)
    return error(ExitCode::kIo, "the bucket is in another region",
                 "set AWS_REGION to its region, or AWS_ENDPOINT_URL_S3 to its endpoint");
  if (code == "NoSuchBucket")
    return error(ExitCode::kIo, fmt::format("the bucket {} does not exist", quoted_name(address_.place)),
                 "create the bucket, or check its name and the endpoint (AWS_ENDPOINT_URL_S3)");
  if (code == "NoSuchUpload")
    return error(ExitCode::kIo, "the upload no longer exists",
                 "it has expired, or another program has aborted it: run the same command again");
  if (code == "RequestTimeTooSkewed") {
    const std::int64_t off = server_time() == 0 ? 0 : std::time(nullptr) - server_time();
    return error(ExitCode::kIo,
                 off == 0 ? std::string("the clock of this machine is wrong")
                          : fmt::format("the clock of this machine is {} s {} that of the server", std::abs(off),
                                        off > 0 ? "ahead of" : "behind"),
                 "set the clock of this machine");
  }
  if (is_one_of(code, {"InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "ExpiredToken",
                       "TokenRefreshRequired"}))
    return error(
        ExitCode::kIo, "the server refuses the credentials",
        "check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or ~/.aws/credentials, and the region (AWS_REGION)");
  if (is_one_of(code, {"QuotaExceeded", "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded"}) || answer.status == 507)
    return error(ExitCode::kIo, "the bucket is full", "free some space or write elsewhere");
  if (answer.status == 401 || answer.status == 403)
    return error(ExitCode::kIo, "the server refuses access", s3().how_to_get_in(access_));
  return error(ExitCode::kIo, "", "");
}

bool Bucket::is_unreadable(const Error& error) { return error.what == kUnreadable; }
bool Bucket::is_malformed(const Error& error) { return error.what.ends_with(kNotOfBucket); }

Result<std::optional<StoredObject>> Bucket::find(const Settings& settings) const {
  // Not HEAD, whose reply has no error code.
  const Call call{.what = "cannot look for the object", .headers = {"Range: bytes=0-0"}, .is_download = true};
  BOOST_OUTCOME_TRY(const Reply reply, ask(call, settings));
  const Answer& answer = reply.answer;
  if (reply.is_answered() && answer.status == 404 && reply.code != "NoSuchBucket") return std::nullopt;
  if (reply.code == "AccessDenied") return Error{ExitCode::kIo, address_.text, std::string(kUnreadable), "", ""};
  const bool is_empty = reply.is_answered() && answer.status == 416;  // an object without bytes
  if (!is_empty && !reply.is_ok()) return refused(call, reply);
  StoredObject found;
  found.etag = answer.header("etag");
  found.token = ObjectToken::parse(answer.header(kTokenHeader));
  found.bytes = size_of(answer);
  found.modified = answer.modified;
  return std::optional(found);
}

Result<Bucket::Started> Bucket::start_upload(const ObjectToken& token, const Settings& settings) const {
  const Call call{.what = "cannot start the upload",
                  .method = "POST",
                  .query = "uploads=",
                  .headers = {fmt::format("{}: {}", kTokenHeader, token.text()), content_type_header(address_.path)},
                  .result = "InitiateMultipartUploadResult",
                  .is_once = true};
  BOOST_OUTCOME_TRY(const Reply reply, ask(call, settings));
  if (!reply.is_ok()) return refused(call, reply);
  std::string upload(trimmed(reply.document->text_of("UploadId")));
  if (!is_usable_name(upload)) return malformed(call, reply, "the upload has no valid identifier");
  return Started{std::move(upload), reply.attempts == 1};
}

Result<std::string> Bucket::put_part(const std::string& upload, unsigned number, const RequestBody& body,
                                     const std::string& md5, const Settings& settings) const {
  const Call call{.what = fmt::format("cannot upload part {}", number),
                  .method = "PUT",
                  .query = fmt::format("partNumber={}&uploadId={}", number, query_encoded(upload)),
                  .headers = {"Content-MD5: " + md5},
                  .body = &body,
                  .has_etag = true};
  BOOST_OUTCOME_TRY(const Reply reply, ask(call, settings));
  if (!reply.is_ok()) return refused(call, reply);
  return std::string(reply.answer.header("etag"));
}

Result<std::optional<std::vector<StoredPart>>> Bucket::list_parts(const std::string& upload,
                                                                  const Settings& settings) const {
  std::vector<StoredPart> parts;
  ListBounds bounds(address_.text);
  for (unsigned after = 0;;) {
    const Call call{
        .what = "cannot list the parts of the upload",
        .query = fmt::format("max-parts=1000&part-number-marker={}&uploadId={}", after, query_encoded(upload)),
        .result = "ListPartsResult",
        .upload = upload};
    BOOST_OUTCOME_TRY(const Reply reply, ask(call, settings));
    if (reply.is_answered() && reply.answer.status == 404 && reply.code != "NoSuchBucket") return std::nullopt;
    if (!reply.is_ok()) return refused(call, reply);
    unsigned last = after;
    for (const XmlElement& part : reply.document->children) {
      if (part.name != "Part") continue;
      const auto number = number_of<unsigned>(part.text_of("PartNumber"));
      const std::string_view etag = trimmed(part.text_of("ETag"));
      if (number <= last || number > kMaxParts)
        return malformed(call, reply, fmt::format("the numbers of parts are not ascending from 1 to {}", kMaxParts));
      if (!is_usable_name(etag)) return malformed(call, reply, fmt::format("part {} has no valid ETag", number));
      last = number;
      parts.push_back({number, std::string(etag), number_of<std::uint64_t>(part.text_of("Size"))});
    }
    if (trimmed(reply.document->text_of("IsTruncated")) != "true") return std::optional(std::move(parts));
    if (const Status bounded = bounds.add_page(last - after, std::to_string(last)); !bounded)
      return malformed(call, reply, bounded.error().what);
    after = last;
  }
}

// Sends the request that makes the object visible.
Status Bucket::send_last(Call call, const ObjectToken& token, std::uint64_t bytes, bool overwrite,
                         const Settings& settings) const {
  if (!overwrite) call.headers.emplace_back("If-None-Match: *");
  BOOST_OUTCOME_TRY(Reply reply, ask(call, settings));
  if (!overwrite && (reply.answer.status == 501 || reply.code == "NotImplemented")) {
    call.headers.pop_back();  // a server without conditional writes: the caller has looked for the object before
    BOOST_OUTCOME_TRY(reply, ask(call, settings));
  }
  if (reply.is_ok()) return ok();
  // This attempt, or an earlier one whose answer was lost, may have succeeded: the object shows it.
  if (reply.has_success_status() || (reply.is_answered() && is_unsure(reply.answer.status)))
    if (const auto there = find(settings); there && there.value() && there.value()->is(token, bytes)) return ok();
  if (reply.answer.status == 412) {
    Error error = target_exists(address_.text);
    error.detail = "another program wrote it during the run";
    return error;
  }
  return refused(call, reply);
}

Status Bucket::complete(const std::string& upload, std::span<const std::string> etags, const ObjectToken& token,
                        std::uint64_t bytes, bool overwrite, const Settings& settings) const {
  std::string xml = "<CompleteMultipartUpload>";
  for (std::size_t i = 0; i < etags.size(); ++i)
    xml += fmt::format("<Part><PartNumber>{}</PartNumber><ETag>{}</ETag></Part>", i + 1, escaped(etags[i]));
  xml += "</CompleteMultipartUpload>";
  const RequestBody body = body_of(xml, sha256_hex(xml));
  return send_last({.what = "cannot complete the upload",
                    .method = "POST",
                    .query = "uploadId=" + query_encoded(upload),
                    .headers = {},
                    .body = &body,
                    .result = "CompleteMultipartUploadResult",
                    .has_etag = true,
                    .stall = kCompletionStall},
                   token, bytes, overwrite, settings);
}

Status Bucket::put(std::string_view text, const ObjectToken& token, bool overwrite, const Settings& settings) const {
  const RequestBody body = body_of(text, sha256_hex(text));
  return send_last({.what = "cannot upload the object",
                    .method = "PUT",
                    .headers = {fmt::format("{}: {}", kTokenHeader, token.text()), content_type_header(address_.path),
                                "Content-MD5: " + md5_of(text)},
                    .body = &body,
                    .has_etag = true},
                   token, text.size(), overwrite, settings);
}

Status Bucket::abort(const std::string& upload, const Settings& settings) const {
  const Call call{.what = "cannot abort the upload", .method = "DELETE", .query = "uploadId=" + query_encoded(upload)};
  // A part that is still arriving is kept after the first attempt.
  constexpr int kAttempts = 3;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    BOOST_OUTCOME_TRY(const Reply reply, ask(call, settings));
    if (reply.is_answered() && reply.answer.status == 404) return ok();
    if (!reply.is_ok()) return refused(call, reply);
    if (const auto parts = list_parts(upload, settings); !parts || !parts.value()) return ok();
  }
  return ok();
}

Status Bucket::abort_others(const std::string& kept, std::int64_t from, std::int64_t to,
                            const Settings& settings) const {
  const Call call{.what = "cannot list the uploads of the bucket",
                  .query = fmt::format("max-uploads=1000&prefix={}&uploads=", query_encoded(address_.path)),
                  .result = "ListMultipartUploadsResult",
                  .is_about_bucket = true};
  BOOST_OUTCOME_TRY(const Reply reply, ask(call, settings));
  if (!reply.is_ok()) return refused(call, reply);
  for (const XmlElement& upload : reply.document->children) {
    if (upload.name != "Upload") continue;
    const std::string id(trimmed(upload.text_of("UploadId")));
    const std::int64_t at = seconds_of_iso_time(std::string(trimmed(upload.text_of("Initiated"))));
    if (upload.text_of("Key") != address_.path || !is_usable_name(id) || id == kept || at < from || at > to) continue;
    BOOST_OUTCOME_TRY(abort(id, settings));
  }
  return ok();
}

}  // namespace ggufmill::remote
