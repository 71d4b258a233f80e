#include "pipeline/io/remote/hub_upload.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <map>
#include <set>

#include "pipeline/core/digest.h"
#include "pipeline/core/json.h"
#include "pipeline/core/text.h"
#include "pipeline/io/output_store.h"
#include "pipeline/io/output_target.h"
#include "pipeline/io/remote/hub.h"
#include "pipeline/io/remote/hub_client.h"
#include "pipeline/io/remote/lfs_upload.h"
#include "pipeline/io/remote/server_text.h"
#include "pipeline/io/remote/xet_python.h"
#include "pipeline/io/remote/xet_upload.h"
#include "pipeline/io/source_path.h"

namespace ggufmill::remote {
namespace {

namespace json = boost::json;

constexpr std::size_t kSampleBytes = 512;        // of a file, by which the hub decides how it is stored
constexpr std::size_t kFilesPerRequest = 100;    // of a batch
constexpr std::uint64_t kMaxRegular = 10 << 20;  // bytes of a file that is part of the commit itself

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

// Returns true for the name that git gives to a commit.
bool is_commit_id(std::string_view id) {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return (id.size() == 40 || id.size() == 64) && std::ranges::all_of(id, is_digit);
}

class Upload {
 public:
  Upload(const HubUpload& upload, const Settings& settings, std::function<void(std::uint64_t)> sent)
      : upload_(upload), client_(upload, settings), stop_(settings.stop), sent_(std::move(sent)) {}

  Result<HubContents> contents() { return client_.list_files(false); }

  // The hub gives access to the store of Xet.
  Result<bool> offers_xet() {
    BOOST_OUTCOME_TRY(const Access access, access_to_hub(client_.api("xet-write-token")));
    std::string text;
    BOOST_OUTCOME_TRY(const Answer answer, client_.send_call({"GET", access.url}, access, text, HubClient::kNotFound));
    if (answer.status != HubClient::kNotFound) return true;
    if (!upload_.creates) return false;
    std::string files;
    BOOST_OUTCOME_TRY(const Access list, access_to_hub(client_.api("tree")));
    BOOST_OUTCOME_TRY(const Answer there, client_.send_call({"GET", list.url}, list, files, HubClient::kNotFound));
    return there.status == HubClient::kNotFound;
  }

  // The hub returns upload instructions only to users who may upload.
  Status check_access() {
    const std::string text = "---\n";
    const json::object file{{"path", "README.md"}, {"size", text.size()}, {"sample", base64_of(text)}};
    BOOST_OUTCOME_TRY(const Access access, access_to_hub(client_.api("preupload")));
    if (access.is_anonymous)
      return Error{ExitCode::kUsage, client_.address().text,
                   access.token_withheld ? hub().how_to_get_in(access) : "there is no token for the hub", "",
                   access.token_withheld ? "" : "set HF_TOKEN to a token that may write there, or run `hf auth login`"};
    const HubCall call{"POST",
                       access.url,
                       {"Content-Type: application/json"},
                       body_of_text(json::serialize(json::object{{"files", json::array{file}}})),
                       true};
    std::string text_of_answer;
    BOOST_OUTCOME_TRY(const Answer answer,
                      client_.send_call(call, access, text_of_answer, upload_.creates ? HubClient::kNotFound : 0));
    if (answer.status == HubClient::kNotFound) return ok();
    BOOST_OUTCOME_TRY(client_.read_answer(text_of_answer));
    return ok();
  }

  Result<HubCommit> run(std::span<const HubFile> files) {
    HubCommit commit;
    BOOST_OUTCOME_TRY(const HubContents present, client_.list_files(true));
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
    BOOST_OUTCOME_TRY(client_.list_files(true));
    std::vector<const HubFile*> all, large, small;
    for (const HubFile& file : files) all.push_back(&file);
    BOOST_OUTCOME_TRY(ask_how(all, large, small));
    BOOST_OUTCOME_TRY(send_all(large));
    std::vector<bool> is_sent;
    for (const HubFile& file : files) is_sent.push_back(std::ranges::count(large, &file) != 0);
    return is_sent;
  }

 private:
  static Result<bool> is_present(const HubFile& file, const HubContents& present) {
    const auto found = present.find(file.name);
    if (found == present.end()) return false;
    BOOST_OUTCOME_TRY(const auto names, content_names(file));
    return std::ranges::count(names, found->second) != 0;
  }

  // Refuses to replace an existing file.
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
                      client_.post("/api/validate-yaml", json::serialize(wanted), {.taken = HubClient::kBadRequest}));
    const json::array* errors = json_array(answer, "errors");
    if (!errors || errors->empty()) return ok();
    std::string reasons;
    for (const json::value& each : *errors)
      if (const auto reason = json_string(each, "message"))
        reasons += (reasons.empty() ? "the hub says: " : "; ") + quoted_answer(*reason);
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
    BOOST_OUTCOME_TRY(
        const json::value answer,
        client_.post(client_.api("preupload"), json::serialize(json::object{{"files", std::move(described)}})));
    std::map<std::string, std::string, std::less<>> modes;
    std::set<std::string, std::less<>> is_ignored;
    if (const json::array* each = json_array(answer, "files"))
      for (const json::value& one : *each)
        if (const auto name = json_string(one, "path"), mode = json_string(one, "uploadMode"); name && mode) {
          modes[std::string(*name)] = *mode;
          const json::value* const ignored = json_member(one, "shouldIgnore");
          if (ignored && (!ignored->is_bool() || ignored->get_bool())) is_ignored.insert(std::string(*name));
        }
    for (const HubFile* file : files) {
      if (file->is_sent) continue;
      const auto mode = modes.find(file->name);
      if (mode == modes.end() || (mode->second != "lfs" && mode->second != "regular"))
        return client_.not_understood(fmt::format("how to send {}", quoted_name(file->name)));
      if (is_ignored.contains(file->name))
        return Error{ExitCode::kIo, file->path, "the hub ignores the file", "a .gitignore of the repository names it",
                     "change the .gitignore of the repository, or the name of the file"};
      const bool is_large = mode->second == "lfs" || file->bytes > kMaxRegular;
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
    json::array transfers{"basic", "multipart"};
    BOOST_OUTCOME_TRY(const XetPython python, python_with_xet(stop_));
    if (!python.path.empty()) transfers.push_back("xet");
    const json::object batch{{"operation", "upload"},
                             {"transfers", std::move(transfers)},
                             {"hash_algo", "sha256"},
                             {"ref", {{"name", upload_.revision}}},
                             {"objects", std::move(objects)}};
    BOOST_OUTCOME_TRY(const json::value answer,
                      client_.post(client_.batch_path(), json::serialize(batch), {.type = kLfsType}));
    const json::array* answers = json_array(answer, "objects");
    if (!answers) return client_.not_understood("where to send the files");
    const bool by_xet = json_string(answer, "transfer") == std::string_view("xet");
    if (!by_xet) note_lfs(python, files, *answers);
    std::vector<const HubFile*> for_xet;
    LfsUpload by_lfs(client_, sent_);
    Diagnostics errors;
    for (const HubFile* file : files) {
      const auto found = std::ranges::find_if(*answers, [&](const json::value& each) {
        return json_string(each, "oid") == std::string_view(file->sha256);
      });
      if (found == answers->end())
        return client_.not_understood(fmt::format("where to send {}", quoted_name(file->name)));
      if (by_xet && !file->is_sent && is_wanted(*found)) {
        for_xet.push_back(file);
        continue;
      }
      const Status added = by_lfs.add(*file, *found);
      if (!added && !file->is_sent) return added.error();
      if (!added) errors.add(added.error());  // all that are forgotten are reported
    }
    if (!errors.empty()) return errors.together();
    BOOST_OUTCOME_TRY(by_lfs.send());
    if (for_xet.empty()) return ok();
    BOOST_OUTCOME_TRY(const Access access, access_to_hub(client_.api("xet-write-token")));
    return send_by_xet(python.path, for_xet, access.url, access, stop_, sent_);
  }

  // Reports that files are sent whole, by LFS, and why, unless the user wants that.
  void note_lfs(const XetPython& python, std::span<const HubFile* const> files, const json::array& answers) {
    const bool sends_any = std::ranges::any_of(files, [](const HubFile* file) { return !file->is_sent; }) &&
                           std::ranges::any_of(answers, is_wanted);
    if (!sends_any || !upload_.note || is_xet_disabled()) return;
    upload_.note(fmt::format(
        "hf://{}: files are sent by LFS, not in chunks by Xet: {}", upload_.repository,
        python.path.empty() ? python.why + " (`pip install \"ggufmill[hub]\"`)" : "the hub does not offer it"));
  }

  // Returns true if the hub asks for the content of an object.
  static bool is_wanted(const json::value& object) {
    const json::value* const actions = json_member(object, "actions");
    return !json_member(object, "error") && actions && json_member(*actions, "upload");
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
    BOOST_OUTCOME_TRY(const Access access, access_to_hub(client_.api("commit")));
    HubCall call{"POST", access.url, {"Content-Type: application/x-ndjson"}, body_of_text(std::move(text)), true};
    call.took_effect = [&]() -> Result<bool> {
      BOOST_OUTCOME_TRY(const HubContents present, client_.list_files(false));
      for (const auto* files : {&large, &small})
        for (const HubFile* file : *files) {
          BOOST_OUTCOME_TRY(const bool is_there, is_present(*file, present));
          if (!is_there) return false;
        }
      return true;
    };
    std::string said;
    BOOST_OUTCOME_TRY(client_.send_call(call, access, said));
    const auto answer = client_.read_answer(said);
    const auto id = answer ? json_string(answer.value(), "commitOid") : std::nullopt;
    if (id && is_commit_id(*id) && json_flag(answer.value(), "success", true)) return std::string(*id);
    // Not a clear success: the files of the branch decide.
    BOOST_OUTCOME_TRY(const bool is_done, call.took_effect());
    if (is_done) return std::string();
    Error error{ExitCode::kIo, client_.address().text,
                "the hub did not confirm the commit, and the branch does not have its files",
                "its answer has no valid `commitOid`",
                "run the same command again; is HF_ENDPOINT the endpoint of a hub?"};
    if (!answer && !answer.error().detail.empty()) error.detail += "; " + answer.error().detail;
    return error;
  }

  const HubUpload& upload_;
  const HubClient client_;
  const std::atomic<bool>* const stop_;
  const std::function<void(std::uint64_t)> sent_;
};

}  // namespace

Result<bool> offers_xet(const HubUpload& upload, const Settings& settings) {
  return Upload(upload, settings, {}).offers_xet();
}

Error too_large(std::string_view file, std::uint64_t bytes, const std::string& why) {
  const std::string_view divide = "divide it: gguf: {path: .., shard_size: 45G}";
  return usage_error(
      fmt::format("{} has {}, but the hub accepts files of at most {} without Xet: {}", file, human_bytes(bytes),
                  human_bytes(kMaxLfsBytes), why.empty() ? "it does not offer Xet for this repository" : why),
      why.empty() || is_xet_disabled() ? std::string(divide)
                                       : fmt::format("`pip install \"ggufmill[hub]\"`, or {}", divide));
}

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
  if (file.bytes > kMaxRegular || file.is_sent) return names;
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
