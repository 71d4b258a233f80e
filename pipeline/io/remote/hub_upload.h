#pragma once
// Uploads files to a repository of the Hugging Face hub.
// Source of the protocol: huggingface_hub (hf_api.py, _commit_api.py, lfs.py) and the Git LFS batch API.

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/io/remote/requests.h"

namespace ggufmill::remote {

// A local file and its name in the repository.
struct HubFile {
  std::string path, name;
  std::uint64_t bytes = 0;
  std::string sha256;    // 64 hexadecimal digits
  bool is_sent = false;  // by send_to_hub(); the local file may be missing
  // Contents that may be replaced even if HubUpload::replaces is not set, as contents_on_hub() names them.
  std::vector<std::string> earlier{};
};

struct HubUpload {
  std::string repository;            // "ORG/NAME"
  std::string revision = "main";     // a branch
  std::string message;               // of the commit
  bool creates = false;              // creates the repository if it does not exist
  std::optional<bool> is_private{};  // of a repository that is created; none: as the organization has it
  bool replaces = true;              // files with the same names
  std::function<void(const std::string& note)> note{};  // receives what the user should know, a line; may be empty
};

struct HubCommit {
  std::string id;                           // empty: nothing was to be committed, or the hub's answer was lost
  std::size_t uploaded = 0, unchanged = 0;  // number of files
};

// Largest file that the hub accepts through Git LFS, in bytes (its documentation, "Repository limitations and
// recommendations"). Larger ones are sent by Xet.
inline constexpr std::uint64_t kMaxLfsBytes = 50'000'000'000;

// Asks whether the hub takes files for the repository by Xet; true if the repository is yet to be created. Exit code 6
// if the hub refuses access, 75 if it does not respond.
Result<bool> offers_xet(const HubUpload& upload, const Settings& settings);
// Returns the error (exit code 2) of a file that is larger than kMaxLfsBytes and cannot be sent by Xet: why_no_xet(),
// or empty if the hub does not offer it.
Error too_large(std::string_view file, std::uint64_t bytes, const std::string& why);

// Adds the files to the repository in one commit; existing files with the same content are not sent again, nor are
// those whose content an interrupted call has sent. Blocks. `sent` receives bytes as they are sent, from several
// threads, but one call at a time; it may be empty. Exit code 2 if a file exists and may not be replaced, 6 if the hub
// refuses access or a file, 75 if it does not respond, or has forgotten the content of files that are sent, which
// `where` of the errors names.
Result<HubCommit> upload_to_hub(const HubUpload& upload, std::span<const HubFile> files, const Settings& settings,
                                const std::function<void(std::uint64_t bytes)>& sent);

// Sends the content of those files that the hub stores apart from commits, for a later upload_to_hub() with `is_sent`.
// The hub may forget content that no commit names after some days. Returns for each file whether the hub has it; files
// that are part of the commit itself are not sent. Otherwise like upload_to_hub().
Result<std::vector<bool>> send_to_hub(const HubUpload& upload, std::span<const HubFile> files, const Settings& settings,
                                      const std::function<void(std::uint64_t bytes)>& sent);

// Asks whether a later upload_to_hub() may write there. Fails like it; exit code 2 if there is no token that can be
// sent. A repository that does not exist but is to be created counts as writable.
Status check_hub_access(const HubUpload& upload, const Settings& settings);

// Returns the files of the repository by name, with the names of their contents: the SHA-256 of one that is stored
// apart from commits, else the SHA-1 of git. Exit code 6 if the repository does not exist, or the hub refuses access;
// none if it is to be created.
using HubContents = std::map<std::string, std::string>;
Result<HubContents> contents_on_hub(const HubUpload& repository, const Settings& settings);

// Returns the names that contents_on_hub() may have for the content of a file.
Result<std::vector<std::string>> content_names(const HubFile& file);

// Returns the SHA-256 of a file, in hexadecimal digits. Ends with interrupted() once `stop` is set.
Result<std::string> sha256_of_file(const std::string& path, const std::atomic<bool>* stop);

// Splits "hf://ORG/NAME@BRANCH". Exit code 2 for any other text.
Result<HubUpload> parse_hub_target(std::string_view text);

}  // namespace ggufmill::remote
