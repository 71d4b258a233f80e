#include "pipeline/io/remote/hub_upload.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <map>

#include "pipeline/core/digest.h"
#include "pipeline/core/json.h"
#include "pipeline/core/text.h"
#include "pipeline/io/output_store.h"
#include "pipeline/io/output_target.h"
#include "pipeline/io/remote/hub.h"
#include "pipeline/io/source_path.h"

namespace ggufmill::remote {
namespace {

namespace json = boost::json;

constexpr std::size_t kMostAnswer = 64 << 20;     // bytes
constexpr std::size_t kSampleBytes = 512;         // of a file, by which the hub decides how it is stored
constexpr std::size_t kFilesPerRequest = 100;     // of a batch
constexpr std::uint64_t kMostRegular = 10 << 20;  // bytes of a file that is part of the commit itself
constexpr const char* kLfs = "application/vnd.git-lfs+json";

// Returns the name that git gives to a file's content.
std::string git_blob(std::string_view content) {
  Digest digest(DigestKind::kSha1);
  digest.add(fmt::format("blob {}", content.size()) + '\0');
  digest.add(content);
  return digest.hex();
}

Result<std::string> read_start(const std::string& path, std::uint64_t bytes) {
  BOOST_OUTCOME_TRY(const auto file, open_source(path));
  std::string text(std::min(bytes, file->bytes()), '\0');
  BOOST_OUTCOME_TRY(file->read(0, std::as_writable_bytes(std::span(text))));
  return text;
}

// A request to the hub, or to where the hub says that content is to be sent.
struct Call {
  std::string method = "GET", url{};
  std::vector<std::string> headers{};
  RequestBody body{};
  bool has_body = false;
  // Called after a failure that may pass: returns true if the request was carried out although its answer was lost.
  std::function<Result<bool>()> took_effect{};
};

struct PostOptions {
  const char* type = "application/json";
  long taken = 0;  // as in Upload::send_call()
};

RequestBody body_of(std::string text) {
  RequestBody body;
  body.bytes = text.size();
  body.read = [text = std::move(text)](std::uint64_t offset, std::span<std::byte> into) {
    std::ranges::copy(std::as_bytes(std::span(text)).subspan(offset, into.size()), into.begin());
    return true;
  };
  return body;
}

class Upload {
 public:
  Upload(const HubUpload& upload, const Settings& settings, std::function<void(std::uint64_t)> sent)
      : upload_(upload), settings_(settings), sent_(std::move(sent)) {
    address_.scheme = &hub();
    address_.place = upload.repository;
    address_.revision = upload.revision;
    address_.text = fmt::format("hf://{}@{}", upload.repository, upload.revision);
  }

  Result<HubContents> contents() { return list_files(false); }

  // The hub tells how to send a file only to those who may send it.
  Status check_access() {
    const std::string text = "---\n";
    const json::object file{{"path", "README.md"}, {"size", text.size()}, {"sample", base64_of(text)}};
    BOOST_OUTCOME_TRY(const Access access, access_to_hub(api("preupload")));
    if (access.is_anonymous)
      return Error{ExitCode::kUsage, address_.text,
                   access.token_withheld ? hub().how_to_get_in(access) : "there is no token for the hub", "",
                   access.token_withheld ? "" : "set HF_TOKEN to a token that may write there, or run `hf auth login`"};
    const Call call{"POST",
                    access.url,
                    {"Content-Type: application/json"},
                    body_of(json::serialize(json::object{{"files", json::array{file}}})),
                    true};
    std::string answer;
    BOOST_OUTCOME_TRY(send_call(call, access, answer, upload_.creates ? kNotFound : 0));
    return ok();
  }

  Result<HubCommit> run(std::span<const HubFile> files) {
    HubCommit commit;
    BOOST_OUTCOME_TRY(const HubContents present, list_files(true));
    std::vector<const HubFile*> missing;
    for (const HubFile& file : files) {
      BOOST_OUTCOME_TRY(const bool is_there, is_present(file, present));
      if (is_there) continue;
      BOOST_OUTCOME_TRY(check_replaced(file, present));
      missing.push_back(&file);
    }
    commit.unchanged = files.size() - missing.size();
    if (missing.empty()) return commit;
    for (const HubFile* file : missing)
      if (file->name == "README.md") {
        BOOST_OUTCOME_TRY(check_card(*file));
      }
    std::vector<const HubFile*> large, small;
    BOOST_OUTCOME_TRY(ask_how(missing, large, small));
    BOOST_OUTCOME_TRY(send_all(large));
    BOOST_OUTCOME_TRY(commit.id, make_commit(large, small));
    commit.uploaded = missing.size();
    return commit;
  }

  Result<std::vector<bool>> send_content(std::span<const HubFile> files) {
    BOOST_OUTCOME_TRY(list_files(true));
    std::vector<const HubFile*> all, large, small;
    for (const HubFile& file : files) all.push_back(&file);
    BOOST_OUTCOME_TRY(ask_how(all, large, small));
    BOOST_OUTCOME_TRY(send_all(large));
    std::vector<bool> is_sent;
    for (const HubFile& file : files) is_sent.push_back(std::ranges::count(large, &file) != 0);
    return is_sent;
  }

 private:
  static constexpr long kNotFound = 404, kConflict = 409, kBadRequest = 400;

  // ---- requests ----

  // Sends a request until it succeeds. An answer with the status `taken` is returned as well; `text` is empty if the
  // answer was lost.
  Result<Answer> send_call(const Call& call, const Access& access, std::string& text, long taken = 0) {
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
      if (call.has_body) request.body = &call.body;
      const Answer answer = send(request, [&](const Answer&, std::span<const std::byte> piece) {
        text.append(reinterpret_cast<const char*>(piece.data()), piece.size());
        return text.size() <= kMostAnswer;
      });
      if (text.size() > kMostAnswer) return input_error(address_.text, "the hub's answer is larger than 64 MiB");
      const bool is_answered = answer.outcome == Answer::Outcome::kAnswered;
      if (is_answered && answer.status >= 200 && answer.status < 300) return answer;
      // The hub creates only one repository of a user at a time.
      const bool is_busy = is_answered && answer.status == kConflict && text.find("in progress") != text.npos;
      if (is_answered && answer.status == taken && !is_busy) return answer;
      if (is_answered && !is_busy && !may_pass(answer)) return refused(call, answer, access, text);
      BOOST_OUTCOME_TRY(is_busy ? attempts.wait_after(answer) : attempts.wait_after(answer, access));
      if (!call.took_effect) continue;
      BOOST_OUTCOME_TRY(const bool is_done, call.took_effect());
      text.clear();
      if (is_done) return answer;
    }
  }

  // Adds the reason that the hub gives, which contains no secrets, to the refusal.
  Error refused(const Call& call, const Answer& answer, const Access& access, const std::string& text) const {
    Error error = refusal(address_, answer, access);
    error.code = ExitCode::kIo;
    if (const auto own = access_to_hub(""); own && origin_of(own.value().url) != origin_of(call.url)) {
      error.what = fmt::format("the storage to which the hub refers refuses the content ({})", answer.status);
      error.help = "its addresses are valid for a limited time: run the same command again";
      return error;
    }
    if (answer.status == 404)
      error.what = "the repository or branch does not exist, or the token may not see it (404)",
      error.help = "create it on the hub, or set `create: true`";
    if (answer.status == 401 || answer.status == 403) error.help = "HF_TOKEN must be a token that may write there";
    if (const auto document = parse_json("", text))
      if (const auto reason = json_string(document.value(), "error"))
        error.detail = "the hub says: " + quoted_name(*reason, 200);
    return error;
  }

  // Sends a text to a path of the hub, and returns its answer.
  Result<json::value> post(const std::string& path, std::string text, const PostOptions& options = {}) {
    BOOST_OUTCOME_TRY(const Access access, access_to_hub(path));
    Call call{"POST", access.url, {fmt::format("Content-Type: {}", options.type)}, body_of(std::move(text)), true};
    if (options.type == std::string_view(kLfs)) call.headers.push_back(fmt::format("Accept: {}", kLfs));
    std::string answer;
    BOOST_OUTCOME_TRY(send_call(call, access, answer, options.taken));
    return parse_json(address_.text, answer);
  }

  std::string api(std::string_view what) const {
    return fmt::format("/api/models/{}/{}/{}", upload_.repository, what, upload_.revision);
  }

  // ---- what is there ----

  // `makes` creates the repository if it does not exist and the user wants that; without it, none has no files.
  Result<HubContents> list_files(bool makes) {
    HubContents present;
    BOOST_OUTCOME_TRY(Access access, access_to_hub(api("tree") + "?recursive=true"));
    const std::string origin = origin_of(access.url);
    for (Call call{"GET", access.url}; !call.url.empty();) {
      std::string text;
      BOOST_OUTCOME_TRY(const Answer answer, send_call(call, access, text, upload_.creates ? kNotFound : 0));
      if (answer.status == kNotFound) {
        if (makes) {
          BOOST_OUTCOME_TRY(create());
        }
        return present;
      }
      BOOST_OUTCOME_TRY(const json::value document, parse_json(address_.text, text));
      if (!document.is_array()) return not_understood("a list of files");
      for (const json::value& each : document.get_array()) add(each, present);
      call.url = next_page(answer.header("link"));
      if (!call.url.empty() && origin_of(call.url) != origin) return not_understood("a list of files of its own");
    }
    return present;
  }

  static void add(const json::value& entry, HubContents& present) {
    const auto name = json_string(entry, "path"), blob = json_string(entry, "oid");
    const json::value* lfs = json_member(entry, "lfs");
    const auto content = lfs && lfs->is_object() ? json_string(*lfs, "oid") : blob;
    if (name && content) present[std::string(*name)] = *content;
  }

  // Returns the URL in `<URL>; rel="next"`.
  static std::string next_page(std::string_view link) {
    const std::size_t begin = link.find('<'), end = link.find('>');
    return begin < end && end != link.npos && link.find("rel=\"next\"", end) != link.npos
               ? std::string(link.substr(begin + 1, end - begin - 1))
               : "";
  }

  Status create() {
    const std::size_t slash = upload_.repository.find('/');
    json::object wanted{{"organization", upload_.repository.substr(0, slash)},
                        {"name", upload_.repository.substr(slash + 1)},
                        {"type", "model"}};
    if (upload_.is_private) wanted["visibility"] = *upload_.is_private ? "private" : "public";
    // It is there if the answer to an earlier attempt was lost.
    BOOST_OUTCOME_TRY(post("/api/repos/create", json::serialize(wanted), {.taken = kConflict}));
    return ok();
  }

  static Result<bool> is_present(const HubFile& file, const HubContents& present) {
    const auto found = present.find(file.name);
    if (found == present.end()) return false;
    BOOST_OUTCOME_TRY(const auto names, content_names(file));
    return std::ranges::count(names, found->second) != 0;
  }

  // Refuses to replace a file that is there.
  Status check_replaced(const HubFile& file, const HubContents& present) const {
    const auto found = present.find(file.name);
    if (upload_.replaces || found == present.end() || std::ranges::count(file.earlier, found->second) != 0) return ok();
    return target_exists(fmt::format("hf://{}/{}", upload_.repository, file.name));
  }

  // Asks whether the hub will accept the front matter of a card: it refuses the whole commit otherwise.
  Status check_card(const HubFile& file) {
    BOOST_OUTCOME_TRY(const std::string content, read_start(file.path, file.bytes));
    const json::object wanted{{"repoType", "model"}, {"content", content}};
    BOOST_OUTCOME_TRY(const json::value answer,
                      post("/api/validate-yaml", json::serialize(wanted), {.taken = kBadRequest}));
    const json::array* errors = json_array(answer, "errors");
    if (!errors || errors->empty()) return ok();
    std::string reasons;
    for (const json::value& each : *errors)
      if (const auto reason = json_string(each, "message"))
        reasons += (reasons.empty() ? "the hub says: " : "; ") + quoted_name(*reason, 200);
    return Error{ExitCode::kIo, file.path, "the hub refuses the front matter of the card", reasons,
                 "change it in the card of the checkpoint, or in the template of the card"};
  }

  // ---- what is sent ----

  Status ask_how(const std::vector<const HubFile*>& files, std::vector<const HubFile*>& large,
                 std::vector<const HubFile*>& small) {
    json::array described;
    for (const HubFile* file : files) {
      if (file->is_sent) {
        large.push_back(file);
        continue;
      }
      BOOST_OUTCOME_TRY(const std::string sample, read_start(file->path, kSampleBytes));
      described.push_back(json::object{{"path", file->name}, {"size", file->bytes}, {"sample", base64_of(sample)}});
    }
    if (described.empty()) return ok();
    BOOST_OUTCOME_TRY(const json::value answer,
                      post(api("preupload"), json::serialize(json::object{{"files", std::move(described)}})));
    std::map<std::string, std::string, std::less<>> modes;
    if (const json::array* each = json_array(answer, "files"))
      for (const json::value& one : *each)
        if (const auto name = json_string(one, "path"), mode = json_string(one, "uploadMode"); name && mode)
          modes[std::string(*name)] = *mode;
    for (const HubFile* file : files) {
      if (file->is_sent) continue;
      const auto mode = modes.find(file->name);
      if (mode == modes.end() || (mode->second != "lfs" && mode->second != "regular"))
        return not_understood(fmt::format("how to send {}", quoted_name(file->name)));
      const bool is_large = mode->second == "lfs" || file->bytes > kMostRegular;
      (is_large ? large : small).push_back(file);
    }
    return ok();
  }

  Status send_all(std::span<const HubFile* const> files) {
    for (std::size_t i = 0; i < files.size(); i += kFilesPerRequest) {
      BOOST_OUTCOME_TRY(send_large(files.subspan(i, std::min(kFilesPerRequest, files.size() - i))));
    }
    return ok();
  }

  Status send_large(std::span<const HubFile* const> files) {
    json::array objects;
    for (const HubFile* file : files) objects.push_back(json::object{{"oid", file->sha256}, {"size", file->bytes}});
    const json::object batch{{"operation", "upload"},
                             {"transfers", {"basic", "multipart"}},
                             {"hash_algo", "sha256"},
                             {"ref", {{"name", upload_.revision}}},
                             {"objects", std::move(objects)}};
    BOOST_OUTCOME_TRY(const json::value answer, post(fmt::format("/{}.git/info/lfs/objects/batch", upload_.repository),
                                                     json::serialize(batch), {.type = kLfs}));
    const json::array* answers = json_array(answer, "objects");
    if (!answers) return not_understood("where to send the files");
    Diagnostics errors;
    for (const HubFile* file : files) {
      const auto found = std::ranges::find_if(*answers, [&](const json::value& each) {
        return json_string(each, "oid") == std::string_view(file->sha256);
      });
      if (found == answers->end()) return not_understood(fmt::format("where to send {}", quoted_name(file->name)));
      const Status sent = send_object(*file, *found);
      if (!sent && !file->is_sent) return sent.error();
      if (!sent) errors.add(sent.error());  // all that are forgotten are reported
    }
    return errors.empty() ? Status(ok()) : errors.together();
  }

  Status send_object(const HubFile& file, const json::value& object) {
    if (const json::value* error = json_member(object, "error")) {
      const auto reason = json_string(*error, "message");
      return Error{ExitCode::kIo, address_.text, fmt::format("the hub refuses {}", quoted_name(file.name)),
                   reason ? "the hub says: " + quoted_name(*reason, 200) : "", ""};
    }
    const json::value* actions = json_member(object, "actions");
    const json::value* action = actions ? json_member(*actions, "upload") : nullptr;
    if (!action) return ok();  // the hub has the content already
    if (file.is_sent)
      return Error{ExitCode::kTransient, file.path, "the hub has forgotten the content of this file, which was sent",
                   "", "run the job again: it is written and sent again"};
    const auto url = json_string(*action, "href");
    if (!url) return not_understood(fmt::format("where to send {}", quoted_name(file.name)));
    std::map<std::string, std::string> headers;
    if (const json::value* given = json_member(*action, "header"); given && given->is_object())
      for (const auto& [name, value] : given->get_object())
        if (value.is_string()) headers[std::string(name)] = value.get_string();
    BOOST_OUTCOME_TRY(const auto source, open_source(file.path));
    if (source->bytes() != file.bytes)
      return input_error(file.path, "has changed since its checksum was computed", "run the job again");
    if (headers.contains("chunk_size")) {
      BOOST_OUTCOME_TRY(send_parts(file, *source, std::string(*url), headers));
    } else {
      std::string text;
      Call call{"PUT", std::string(*url), {}, range_of(*source, 0, file.bytes), true};
      for (const auto& [name, value] : headers) call.headers.push_back(fmt::format("{}: {}", name, value));
      BOOST_OUTCOME_TRY(send_call(call, Access{}, text));
    }
    const json::value* verify = json_member(*actions, "verify");
    return verify ? confirm(file, *verify) : Status(ok());
  }

  // Parts have URLs of their own, in headers named by their numbers: "00001".
  Status send_parts(const HubFile& file, const ByteSource& source, const std::string& completion,
                    const std::map<std::string, std::string>& headers) {
    std::uint64_t part_bytes = 0;
    const std::string& size = headers.at("chunk_size");
    std::from_chars(size.data(), size.data() + size.size(), part_bytes);
    std::map<std::uint64_t, std::string> urls;
    for (const auto& [name, value] : headers) {
      std::uint64_t number = 0;
      const auto read = std::from_chars(name.data(), name.data() + name.size(), number);
      if (read.ec == std::errc() && read.ptr == name.data() + name.size()) urls[number] = value;
    }
    const std::uint64_t parts = part_bytes == 0 ? 0 : (file.bytes + part_bytes - 1) / part_bytes;
    if (parts == 0 || urls.size() != parts || urls.begin()->first != 1 || urls.rbegin()->first != parts)
      return not_understood(fmt::format("the parts of {}", quoted_name(file.name)));
    json::array done;
    for (const auto& [number, url] : urls) {
      const std::uint64_t offset = (number - 1) * part_bytes;
      std::string text;
      const Call call{"PUT", url, {}, range_of(source, offset, std::min(part_bytes, file.bytes - offset)), true};
      BOOST_OUTCOME_TRY(const Answer answer, send_call(call, Access{}, text));
      done.push_back(json::object{{"partNumber", number}, {"etag", std::string(answer.header("etag"))}});
    }
    const json::object finished{{"oid", file.sha256}, {"parts", std::move(done)}};
    const Call call{"POST",
                    completion,
                    {fmt::format("Content-Type: {}", kLfs), fmt::format("Accept: {}", kLfs)},
                    body_of(json::serialize(finished)),
                    true};
    std::string text;
    BOOST_OUTCOME_TRY(send_call(call, Access{}, text));  // its URL is signed, as those of the parts are
    return ok();
  }

  Status confirm(const HubFile& file, const json::value& verify) {
    const auto url = json_string(verify, "href");
    if (!url) return ok();
    BOOST_OUTCOME_TRY(const Access access, access_for(std::string(*url)));
    const json::object object{{"oid", file.sha256}, {"size", file.bytes}};
    const Call call{
        "POST", std::string(*url), {fmt::format("Content-Type: {}", kLfs)}, body_of(json::serialize(object)), true};
    std::string text;
    BOOST_OUTCOME_TRY(send_call(call, access, text));
    return ok();
  }

  RequestBody range_of(const ByteSource& source, std::uint64_t begin, std::uint64_t bytes) {
    RequestBody body;
    body.bytes = bytes;
    body.read = [this, &source, begin](std::uint64_t offset, std::span<std::byte> into) {
      if (!source.read(begin + offset, into)) return false;
      if (sent_) sent_(into.size());
      return true;
    };
    return body;
  }

  Result<std::string> make_commit(const std::vector<const HubFile*>& large, const std::vector<const HubFile*>& small) {
    const auto line = [](std::string_view key, json::object value) {
      return json::serialize(json::object{{"key", key}, {"value", std::move(value)}}) + "\n";
    };
    std::string text = line("header", {{"summary", upload_.message}, {"description", ""}});
    for (const HubFile* file : small) {
      BOOST_OUTCOME_TRY(const std::string content, read_start(file->path, file->bytes));
      text += line("file", {{"content", base64_of(content)}, {"path", file->name}, {"encoding", "base64"}});
    }
    for (const HubFile* file : large)
      text += line("lfsFile", {{"path", file->name}, {"algo", "sha256"}, {"oid", file->sha256}, {"size", file->bytes}});
    BOOST_OUTCOME_TRY(const Access access, access_to_hub(api("commit")));
    Call call{"POST", access.url, {"Content-Type: application/x-ndjson"}, body_of(std::move(text)), true};
    call.took_effect = [&]() -> Result<bool> {
      BOOST_OUTCOME_TRY(const HubContents present, list_files(false));
      for (const auto* files : {&large, &small})
        for (const HubFile* file : *files) {
          BOOST_OUTCOME_TRY(const bool is_there, is_present(*file, present));
          if (!is_there) return false;
        }
      return true;
    };
    std::string said;
    BOOST_OUTCOME_TRY(send_call(call, access, said));
    if (said.empty()) return said;
    BOOST_OUTCOME_TRY(const json::value answer, parse_json(address_.text, said));
    const auto id = json_string(answer, "commitOid");
    if (!id) return not_understood("the commit");
    return std::string(*id);
  }

  // Returns the credentials for a URL that the hub has named: those of the hub for its own, none for others.
  static Result<Access> access_for(const std::string& url) {
    BOOST_OUTCOME_TRY(Access access, access_to_hub(""));
    if (origin_of(url) != origin_of(access.url)) return Access{};
    return access;
  }

  Error not_understood(const std::string& what) const {
    return input_error(address_.text, fmt::format("the hub's answer does not say {}", what),
                       "is HF_ENDPOINT the endpoint of a hub?");
  }

  const HubUpload& upload_;
  const Settings& settings_;
  const std::function<void(std::uint64_t)> sent_;
  Address address_;
};

}  // namespace

Result<HubCommit> upload_to_hub(const HubUpload& upload, std::span<const HubFile> files, const Settings& settings,
                                const std::function<void(std::uint64_t bytes)>& sent) {
  return Upload(upload, settings, sent).run(files);
}

Result<std::vector<bool>> send_to_hub(const HubUpload& upload, std::span<const HubFile> files, const Settings& settings,
                                      const std::function<void(std::uint64_t bytes)>& sent) {
  return Upload(upload, settings, sent).send_content(files);
}

Status check_hub_access(const HubUpload& upload, const Settings& settings) {
  return Upload(upload, settings, {}).check_access();
}

Result<HubContents> contents_on_hub(const HubUpload& repository, const Settings& settings) {
  return Upload(repository, settings, {}).contents();
}

Result<std::vector<std::string>> content_names(const HubFile& file) {
  std::vector<std::string> names{file.sha256};
  if (file.bytes > kMostRegular || file.is_sent) return names;
  BOOST_OUTCOME_TRY(const std::string content, read_start(file.path, file.bytes));
  names.push_back(git_blob(content));
  return names;
}

Result<std::string> sha256_of_file(const std::string& path, const std::atomic<bool>* stop) {
  constexpr std::size_t kReadBytes = 1 << 20;
  BOOST_OUTCOME_TRY(const auto file, open_source(path));
  Digest digest(DigestKind::kSha256);
  std::vector<std::byte> buffer;
  for (std::uint64_t at = 0; at < file->bytes(); at += buffer.size()) {
    if (stop && *stop) return interrupted();
    buffer.resize(std::min<std::uint64_t>(kReadBytes, file->bytes() - at));
    BOOST_OUTCOME_TRY(file->read(at, buffer));
    digest.add(buffer);
  }
  return digest.hex();
}

Result<HubUpload> parse_hub_target(std::string_view text) {
  if (!text.starts_with("hf://")) return bad_address(text, "does not name a repository of the hub", kHubHelp);
  BOOST_OUTCOME_TRY(const Address address, hub().parse(text));
  if (!address.path.empty()) return bad_address(text, "names a file, not a repository", kHubHelp);
  HubUpload upload;
  upload.repository = address.place;
  upload.revision = address.revision;
  return upload;
}

}  // namespace ggufmill::remote
