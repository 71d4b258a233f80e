#include "pipeline/io/remote/hub_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>

#include "pipeline/core/json.h"
#include "pipeline/core/text.h"
#include "pipeline/io/output_store.h"
#include "pipeline/io/remote/header.h"
#include "pipeline/io/remote/hub.h"
#include "pipeline/io/remote/list_bounds.h"
#include "pipeline/io/remote/server_text.h"

namespace ggufmill::remote {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxActionHeaders = 64;  // that are sent

void add_file(const json::value& entry, HubContents& present) {
  const auto name = json_string(entry, "path"), blob = json_string(entry, "oid");
  const json::value* lfs = json_member(entry, "lfs");
  const auto content = lfs && lfs->is_object() ? json_string(*lfs, "oid") : blob;
  if (name && content) present[std::string(*name)] = *content;
}

// Returns the URL in `<URL>; rel="next"`.
std::string next_page(std::string_view link) {
  const std::size_t begin = link.find('<'), end = link.find('>');
  return begin < end && end != link.npos && link.find("rel=\"next\"", end) != link.npos
             ? std::string(link.substr(begin + 1, end - begin - 1))
             : "";
}

// Uploads fail with exit code 6, whatever is wrong with the answer.
Error as_io(Error error) {
  if (error.code == ExitCode::kBadInput) error.code = ExitCode::kIo;
  return error;
}

// Returns the error of an answer that is not JSON.
Error not_json(Error error) {
  error.what = "the hub's answer is " + error.what;
  return as_io(std::move(error));
}

std::string_view name_of(std::string_view line) { return line.substr(0, line.find(':')); }

}  // namespace

RequestBody body_of_text(std::string text) {
  RequestBody body;
  body.bytes = text.size();
  body.read = [text = std::move(text)](std::uint64_t offset, std::span<std::byte> into) {
    std::ranges::copy(std::as_bytes(std::span(text)).subspan(offset, into.size()), into.begin());
    return true;
  };
  return body;
}

std::vector<std::string> HubAction::lines(const std::vector<std::string>& own) const {
  std::vector<std::string> lines;
  for (const auto& header : headers)
    if (std::ranges::none_of(own, [&](const std::string& line) { return same_word(name_of(line), header.first); }))
      lines.push_back(fmt::format("{}: {}", header.first, header.second));
  return lines;
}

HubClient::HubClient(const HubUpload& upload, const Settings& settings) : upload_(upload), settings_(settings) {
  address_.scheme = &hub();
  address_.place = upload.repository;
  address_.revision = upload.revision;
  address_.text = fmt::format("hf://{}@{}", upload.repository, upload.revision);
}

std::string HubClient::api(std::string_view what) const {
  return fmt::format("/api/models/{}/{}/{}", upload_.repository, what, upload_.revision);
}

std::string HubClient::batch_path() const { return fmt::format("/{}.git/info/lfs/objects/batch", upload_.repository); }

bool HubClient::is_about_repository(const std::string& url) const {
  const auto models = access_to_hub(fmt::format("/api/models/{}/", upload_.repository)),
             batch = access_to_hub(batch_path());
  return models && batch && (url.starts_with(models.value().url) || url == batch.value().url);
}

Result<Answer> HubClient::send_call(const HubCall& call, const Access& access, std::string& text, long taken) const {
  Attempts attempts(address_, settings_);
  while (true) {
    text.clear();
    Request request;
    request.url = call.url;
    request.method = call.method;
    request.headers = call.headers;
    request.headers.insert(request.headers.end(), access.headers.begin(), access.headers.end());
    request.patience = settings_.patience;
    request.stop = settings_.stop;
    request.abandoned = settings_.abandoned;
    request.is_once = static_cast<bool>(call.took_effect);  // else libcurl may repeat it
    request.answer_bytes = kMaxHubAnswer;
    if (call.has_body) request.body = &call.body;
    const Answer answer = send(request, [&](const Answer&, std::span<const std::byte> piece) {
      text.append(reinterpret_cast<const char*>(piece.data()), piece.size());
      return text.size() <= kMaxHubAnswer;
    });
    if (text.size() > kMaxHubAnswer)
      return Error{ExitCode::kIo, address_.text,
                   fmt::format("the hub's answer is larger than {}", human_bytes(kMaxHubAnswer))};
    const bool is_answered = answer.outcome == Answer::Outcome::kAnswered;
    if (is_answered && answer.status >= 200 && answer.status < 300) return answer;
    // The hub creates only one repository of a user at a time.
    const bool is_busy = is_answered && answer.status == kConflict && text.find("in progress") != text.npos;
    if (is_answered && answer.status == taken && !is_busy) return answer;
    if (is_answered && !is_busy && !may_pass(answer)) return refused(call, answer, access, text);
    if (const Status waited = is_busy ? attempts.wait_after(answer) : attempts.wait_after(answer, access); !waited)
      return as_io(waited.error());
    if (!call.took_effect) continue;
    BOOST_OUTCOME_TRY(const bool is_done, call.took_effect());
    text.clear();
    if (is_done) return answer;
  }
}

// Adds the reason that the hub gives to the refusal.
Error HubClient::refused(const HubCall& call, const Answer& answer, const Access& access,
                         const std::string& text) const {
  Error error = refusal(address_, answer, access);
  error.code = ExitCode::kIo;
  if (const auto own = access_to_hub(""); own && origin_of(own.value().url) != origin_of(call.url)) {
    error.what = fmt::format("the storage to which the hub refers refuses the content ({})", answer.status);
    error.help = "its addresses are valid for a limited time: run the same command again";
    return error;
  }
  if (answer.status == kNotFound && is_about_repository(call.url)) {
    error.what = "the repository or branch does not exist, or the token may not see it (404)";
    error.help = "create it on the hub, or set `create: true`";
  } else if (answer.status == kNotFound) {
    error.what = "the hub does not know the address of a request (404)";
    error.help =
        "addresses that the hub names are valid for a limited time: run the same command again; is HF_ENDPOINT the "
        "endpoint of a hub?";
  }
  if (answer.status == 401 || answer.status == 403) error.help = "HF_TOKEN must be a token that may write there";
  if (const auto document = parse_json("", text))
    if (const auto reason = json_string(document.value(), "error"))
      error.detail = "the hub says: " + quoted_answer(*reason);
  return error;
}

Result<json::value> HubClient::read_answer(std::string_view text) const {
  auto document = parse_json(address_.text, text);
  if (!document) return not_json(document.error());
  const json::value* const error = json_member(document.value(), "error");
  if (!error || error->is_null()) return std::move(document).value();
  const auto reason = json_text(*error);
  return Error{ExitCode::kIo, address_.text, "the hub answers with an error",
               reason ? "the hub says: " + quoted_answer(*reason) : "", ""};
}

Result<json::value> HubClient::post(const std::string& path, std::string text, const PostOptions& options) const {
  BOOST_OUTCOME_TRY(const Access access, access_to_hub(path));
  HubCall call{
      "POST", access.url, {fmt::format("Content-Type: {}", options.type)}, body_of_text(std::move(text)), true};
  if (options.type == std::string_view(kLfsType)) call.headers.push_back(fmt::format("Accept: {}", kLfsType));
  std::string said;
  BOOST_OUTCOME_TRY(const Answer answer, send_call(call, access, said, options.taken));
  if (answer.status != options.taken) return read_answer(said);
  auto document = parse_json(address_.text, said);  // an error is expected
  if (!document) return not_json(document.error());
  return document;
}

Result<HubContents> HubClient::list_files(bool creates) const {
  HubContents present;
  BOOST_OUTCOME_TRY(Access access, access_to_hub(api("tree") + "?recursive=true"));
  const std::string origin = origin_of(access.url);
  ListBounds bounds(address_.text);
  for (HubCall call{"GET", access.url}; !call.url.empty();) {
    std::string text;
    BOOST_OUTCOME_TRY(const Answer answer, send_call(call, access, text, upload_.creates ? kNotFound : 0));
    if (answer.status == kNotFound) {
      if (creates) {
        BOOST_OUTCOME_TRY(create());
      }
      return present;
    }
    BOOST_OUTCOME_TRY(const json::value document, read_answer(text));
    if (!document.is_array()) return not_understood("a list of files");
    for (const json::value& each : document.get_array()) add_file(each, present);
    call.url = next_page(answer.header("link"));
    BOOST_OUTCOME_TRY(bounds.add_page(document.get_array().size(), call.url));
    if (call.url.empty()) break;
    BOOST_OUTCOME_TRY(call.url, usable_url(std::move(call.url)));
    if (origin_of(call.url) != origin) return not_understood("a list of files of its own");
  }
  return present;
}

Status HubClient::create() const {
  const std::size_t slash = upload_.repository.find('/');
  json::object wanted{{"organization", upload_.repository.substr(0, slash)},
                      {"name", upload_.repository.substr(slash + 1)},
                      {"type", "model"}};
  if (upload_.is_private) wanted["visibility"] = *upload_.is_private ? "private" : "public";
  // It exists already if the answer to an earlier attempt was lost.
  BOOST_OUTCOME_TRY(post("/api/repos/create", json::serialize(wanted), {.taken = kConflict}));
  return ok();
}

Result<HubAction> HubClient::read_action(const json::value& action, std::string_view what) const {
  const auto url = json_string(action, "href");
  if (!url) return not_understood(std::string(what));
  HubAction read;
  BOOST_OUTCOME_TRY(read.url, usable_url(std::string(*url)));
  const json::value* const given = json_member(action, "header");
  if (!given || given->is_null()) return read;
  if (!given->is_object()) return not_understood(std::string(what));
  const bool has_parts = given->get_object().contains("chunk_size");  // then the others are addresses of parts
  for (const auto& [name, value] : given->get_object()) {
    const std::string why = value.is_string() ? why_not_sent(name, value.get_string())
                                              : fmt::format("the header {} has an invalid value", quoted_answer(name));
    if (!why.empty())
      return Error{ExitCode::kIo, address_.text, "the hub names a header that may not be sent", why,
                   "nothing was sent there: is HF_ENDPOINT the endpoint of a hub?"};
    read.headers[std::string(name)] = value.get_string();
    if (same_word(name, "Authorization")) remember_secret(value.get_string());
  }
  if (!has_parts && read.headers.size() > kMaxActionHeaders) return not_understood(std::string(what));
  return read;
}

Result<std::string> HubClient::usable_url(std::string url) const {
  BOOST_OUTCOME_TRY(const Access own, access_to_hub(""));
  if (const Status usable = check_named_url(address_, own.url, url, "refers"); !usable) return as_io(usable.error());
  return url;
}

Result<Access> HubClient::access_for(const std::string& url) {
  BOOST_OUTCOME_TRY(Access access, access_to_hub(""));
  if (origin_of(url) != origin_of(access.url)) return Access{};
  return access;
}

Error HubClient::not_understood(const std::string& what) const {
  return {ExitCode::kIo, address_.text, fmt::format("the hub's answer does not say {}", what), "",
          "is HF_ENDPOINT the endpoint of a hub?"};
}

}  // namespace ggufmill::remote
