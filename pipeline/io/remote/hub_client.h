#pragma once
// Requests to the Hugging Face hub about one repository: every answer, address, and header that the hub sends is
// checked here. Source of the protocol: huggingface_hub (hf_api.py, _commit_api.py, lfs.py) and the Git LFS batch API.

#include <boost/json/value.hpp>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/io/remote/hub_upload.h"
#include "pipeline/io/remote/requests.h"

namespace ggufmill::remote {

inline constexpr const char* kLfsType = "application/vnd.git-lfs+json";

// A request to the hub, or to an address that the hub names for content.
struct HubCall {
  std::string method = "GET", url{};
  std::vector<std::string> headers{};
  RequestBody body{};
  bool has_body = false;
  // Called after a failure that may pass: returns true if the request was carried out although its answer was lost.
  std::function<Result<bool>()> took_effect{};
};

// An action that the hub requests for content, such as its upload: the address to send to, and the headers.
struct HubAction {
  std::string url;
  std::map<std::string, std::string> headers;

  // As headers of a request, without those that `own` has already.
  std::vector<std::string> lines(const std::vector<std::string>& own = {}) const;
};

RequestBody body_of_text(std::string text);

// Not thread-safe. The upload and the settings must outlive it. Exit code 6 if the hub refuses a request, or its
// answer violates the protocol; 75 if it does not respond.
class HubClient {
 public:
  static constexpr long kNotFound = 404, kConflict = 409, kBadRequest = 400;

  HubClient(const HubUpload& upload, const Settings& settings);

  const Address& address() const { return address_; }
  // Returns a path of the hub's API: "/api/models/ORG/NAME/WHAT/BRANCH".
  std::string api(std::string_view what) const;
  // Returns the path of the batch API of Git LFS.
  std::string batch_path() const;

  // Sends a request until it succeeds. An answer with the status `taken` is returned as well; `text` is empty if the
  // answer was lost.
  Result<Answer> send_call(const HubCall& call, const Access& access, std::string& text, long taken = 0) const;

  struct PostOptions {
    const char* type = "application/json";
    long taken = 0;  // as in send_call()
  };
  // Sends a text to a path of the hub, and returns its answer.
  Result<boost::json::value> post(const std::string& path, std::string text, const PostOptions& options) const;
  Result<boost::json::value> post(const std::string& path, std::string text) const { return post(path, text, {}); }
  // Returns the document in an answer of the hub. A success that contains an error is refused.
  Result<boost::json::value> read_answer(std::string_view text) const;

  // Returns the files of the repository. `creates` makes the repository if it does not exist and the user wants that;
  // without it, such a repository has no files.
  Result<HubContents> list_files(bool creates) const;

  // Returns an action of the batch API: its address and its headers may be used. `what` is for messages.
  Result<HubAction> read_action(const boost::json::value& action, std::string_view what) const;
  // Returns an address that the hub has named if content may be sent there (check_named_url()).
  Result<std::string> usable_url(std::string url) const;
  // Returns the credentials for a URL that the hub has named: those of the hub for its own, none for others.
  static Result<Access> access_for(const std::string& url);

  // Error for an answer without `what`.
  Error not_understood(const std::string& what) const;

 private:
  Error refused(const HubCall& call, const Answer& answer, const Access& access, const std::string& text) const;
  // Returns true for the URLs of api() and batch_path(), which exist if the repository does.
  bool is_about_repository(const std::string& url) const;
  Status create() const;

  const HubUpload& upload_;
  const Settings& settings_;
  Address address_;
};

}  // namespace ggufmill::remote
