#include "pipeline/io/remote/lfs_upload.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <boost/json.hpp>
#include <charconv>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "pipeline/core/json.h"
#include "pipeline/core/text.h"
#include "pipeline/io/remote/part_map.h"
#include "pipeline/io/remote/server_text.h"
#include "pipeline/io/remote/xet_python.h"
#include "pipeline/io/source_path.h"
#include "pipeline/io/threads.h"

namespace ggufmill::remote {
namespace {

namespace json = boost::json;

constexpr unsigned kAtATime = 4;  // pieces that are sent

template <class Number>
std::optional<Number> number_in(const std::string& text) {
  Number number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  return read.ec == std::errc() && read.ptr == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

// The protocol does not say what the answer contains; an error in it is one.
Status check_done(const HubClient& client, const std::string& text) {
  if (!parse_json("", text)) return ok();
  BOOST_OUTCOME_TRY(client.read_answer(text));
  return ok();
}

}  // namespace

// Where the pieces of a file are sent: one, or parts with URLs of their own, in headers named by their numbers:
// "00001".
struct LfsUpload::Pieces {
  std::uint64_t bytes = 0;  // of each but the last
  std::vector<std::string> urls;
  bool are_parts = false;
};

Result<LfsUpload::Pieces> LfsUpload::pieces_of(const HubFile& file, const HubAction& upload) const {
  const auto size = upload.headers.find("chunk_size");
  if (size == upload.headers.end()) return Pieces{file.bytes, {upload.url}, false};
  Pieces pieces{number_in<std::uint64_t>(size->second).value_or(0), {}, true};
  std::map<std::uint64_t, std::string> urls;
  for (const auto& [name, value] : upload.headers)
    if (const auto number = number_in<std::uint64_t>(name)) {
      BOOST_OUTCOME_TRY(urls[*number], client_.usable_url(value));
    }
  const std::uint64_t parts =
      pieces.bytes == 0 ? 0 : file.bytes / pieces.bytes + (file.bytes % pieces.bytes != 0 ? 1 : 0);
  if (parts == 0 || parts > kMaxParts || urls.size() != parts || urls.begin()->first != 1 ||
      urls.rbegin()->first != parts)
    return client_.not_understood(fmt::format("the parts of {}", quoted_name(file.name)));
  for (auto& [number, url] : urls) pieces.urls.push_back(std::move(url));
  return pieces;
}

// A file that the hub wants.
struct LfsUpload::Content {
  const HubFile& file;
  HubAction upload;
  std::optional<HubAction> verify;
  Pieces pieces;
  std::shared_ptr<const ByteSource> source;
  std::vector<std::string> etags;  // of the parts
  std::atomic<std::size_t> left;   // number of pieces that are not yet sent

  Status send_piece(const HubClient& client, std::size_t index, const std::function<void(std::uint64_t)>& sent);
  Status finish(const HubClient& client) const;
  Status join_parts(const HubClient& client) const;
  Status confirm(const HubClient& client) const;
};

Status LfsUpload::Content::send_piece(const HubClient& client, std::size_t index,
                                      const std::function<void(std::uint64_t)>& sent) {
  const std::uint64_t begin = index * pieces.bytes;
  RequestBody body;
  body.bytes = std::min(pieces.bytes, file.bytes - begin);
  body.read = [&](std::uint64_t offset, std::span<std::byte> into) {
    if (!source->read(begin + offset, into)) return false;
    sent(into.size());
    return true;
  };
  const HubCall call{"PUT", pieces.urls[index], pieces.are_parts ? std::vector<std::string>() : upload.lines(),
                     std::move(body), true};
  std::string text;
  BOOST_OUTCOME_TRY(const Answer answer, client.send_call(call, Access{}, text));
  etags[index] = answer.header("etag");
  if (pieces.are_parts && etags[index].empty())
    return client.not_understood(fmt::format("that part {} of {} has arrived", index + 1, quoted_name(file.name)));
  return --left == 0 ? finish(client) : Status(ok());
}

Status LfsUpload::Content::finish(const HubClient& client) const {
  if (pieces.are_parts) {
    BOOST_OUTCOME_TRY(join_parts(client));
  }
  return verify ? confirm(client) : Status(ok());
}

Status LfsUpload::Content::join_parts(const HubClient& client) const {
  json::array parts;
  for (std::size_t i = 0; i < etags.size(); ++i)
    parts.push_back(json::object{{"partNumber", i + 1}, {"etag", etags[i]}});
  const json::object finished{{"oid", file.sha256}, {"parts", std::move(parts)}};
  const HubCall call{"POST",
                     upload.url,
                     {fmt::format("Content-Type: {}", kLfsType), fmt::format("Accept: {}", kLfsType)},
                     body_of_text(json::serialize(finished)),
                     true};
  std::string text;
  BOOST_OUTCOME_TRY(client.send_call(call, Access{}, text));  // its URL is signed, as those of the parts are
  return check_done(client, text);
}

Status LfsUpload::Content::confirm(const HubClient& client) const {
  BOOST_OUTCOME_TRY(const Access access, HubClient::access_for(verify->url));
  const json::object object{{"oid", file.sha256}, {"size", file.bytes}};
  HubCall call{
      "POST", verify->url, {fmt::format("Content-Type: {}", kLfsType)}, body_of_text(json::serialize(object)), true};
  std::vector<std::string> own = call.headers;
  own.insert(own.end(), access.headers.begin(), access.headers.end());
  const std::vector<std::string> more = verify->lines(own);
  call.headers.insert(call.headers.end(), more.begin(), more.end());
  std::string text;
  BOOST_OUTCOME_TRY(client.send_call(call, access, text));
  return check_done(client, text);
}

LfsUpload::LfsUpload(const HubClient& client, const std::function<void(std::uint64_t)>& sent)
    : client_(client), sent_(sent) {}

LfsUpload::~LfsUpload() = default;

Status LfsUpload::add(const HubFile& file, const json::value& object) {
  if (const json::value* error = json_member(object, "error")) {
    const auto reason = json_string(*error, "message");
    return Error{ExitCode::kIo, client_.address().text, fmt::format("the hub refuses {}", quoted_name(file.name)),
                 reason ? "the hub says: " + quoted_answer(*reason) : "", ""};
  }
  const json::value* actions = json_member(object, "actions");
  const json::value* action = actions ? json_member(*actions, "upload") : nullptr;
  if (!action) return ok();  // the hub has the content already
  if (file.is_sent)
    return Error{ExitCode::kTransient, file.path, "the hub has forgotten the content of this file, which was sent", "",
                 "run the job again: it is written and sent again"};
  if (file.bytes > kMaxLfsBytes) {
    Error error = too_large(quoted_name(file.name), file.bytes, why_no_xet());
    error.where = client_.address().text;
    return error;
  }
  BOOST_OUTCOME_TRY(HubAction upload,
                    client_.read_action(*action, fmt::format("where to send {}", quoted_name(file.name))));
  std::optional<HubAction> verify;
  if (const json::value* given = json_member(*actions, "verify"); given && !given->is_null()) {
    BOOST_OUTCOME_TRY(verify, client_.read_action(*given, "where to confirm " + quoted_name(file.name)));
  }
  BOOST_OUTCOME_TRY(Pieces pieces, pieces_of(file, upload));
  BOOST_OUTCOME_TRY(auto source, open_source(file.path));
  if (source->bytes() != file.bytes)
    return input_error(file.path, "has changed since its checksum was computed", "run the job again");
  const std::size_t count = pieces.urls.size();
  contents_.emplace_back(new Content{file, std::move(upload), std::move(verify), std::move(pieces), std::move(source),
                                     std::vector<std::string>(count), count});
  return ok();
}

Status LfsUpload::send() {
  std::vector<std::pair<Content*, std::size_t>> pieces;
  for (const auto& content : contents_)
    for (std::size_t i = 0; i < content->pieces.urls.size(); ++i) pieces.emplace_back(content.get(), i);
  std::mutex mutex;
  const auto sent = [&](std::uint64_t bytes) {
    if (!sent_) return;
    const std::scoped_lock lock(mutex);
    sent_(bytes);
  };
  return for_each_on_threads(kAtATime, pieces.size(), [&](std::size_t i, auto&) {
    return pieces[i].first->send_piece(client_, pieces[i].second, sent);
  });
}

}  // namespace ggufmill::remote
