#pragma once
// Places where a key of AWS may be (see aws_keys.h), and what the requests to those that are servers have in common.

#include <atomic>
#include <boost/json/value.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pipeline/io/remote/aws_keys.h"
#include "pipeline/io/remote/http.h"

namespace ggufmill::remote {

struct Chain {
  const AwsFiles& files;
  std::string profile, region;
  const std::atomic<bool>* stop = nullptr;  // ends requests and programs once set
  // False for the source of a role: the environment has the keys of the program, not of the profile.
  bool uses_environment = true;
};

// The key found in a place; nullopt if the place is not in use. Exit code 2 if a setting is malformed, 6 if a server or
// a program gives no key, 75 if a server cannot be asked.
using Found = Result<std::optional<AwsKey>>;
Found of_environment(const Chain& chain);
Found of_role(const Chain& chain);  // with the key of another profile, or of a place that the profile names
Found of_web_identity(const Chain& chain);
Found of_sign_on(const Chain& chain);
Found of_process(const Chain& chain);
Found of_container(const Chain& chain);
Found of_instance(const Chain& chain);
// Asks the places of a profile in order, but for a role of another profile.
Found of_profile(const Chain& chain);

// ---- programs ----

// Returns the words of a command line as a shell would, without its other syntax; nullopt if a quote is not closed.
std::optional<std::vector<std::string>> words_of_command(std::string_view line);

// ---- keys ----

// Returns the key of these parts, whose secrets messages will not show; nullopt if both `id` and `secret` are empty.
// Exit code 2 if only one is, or if a part is malformed.
Found key_of(std::string id, std::string secret, std::string token, const std::string& from);
// Returns seconds since 1970; nullopt for an empty text. Exit code 6 if it is not a time.
Result<std::optional<std::int64_t>> expiry_of(const std::string& text, const std::string& from);

// Names of the members of a document that has a key; empty: there is none.
struct KeyNames {
  const char *id, *secret, *token, *expires;
};
// Returns the key in a document. Exit code 6 if it has none.
Found key_of_json(const boost::json::value& document, const KeyNames& names, const std::string& from);

// ---- servers ----

struct Said {
  Answer answer;
  std::string text;
  bool is_ok() const { return answer.outcome == Answer::Outcome::kAnswered && answer.status / 100 == 2; }
  // Another attempt, later, may succeed.
  bool is_busy() const {
    return answer.outcome == Answer::Outcome::kAnswered && (answer.status >= 500 || answer.status == 429);
  }
};

Request request_to(std::string url, const Chain& chain);
// Returns a request to a service of the machine itself, which answers at once or not at all. Never through a proxy.
Request nearby_request(std::string url, const Chain& chain);
// Sends a request, again after temporary failures. A secret in the answer is for the caller to remember.
Said ask(Request request, unsigned attempts = 3);
// Returns the error of a server that gave no key.
Error failed(const std::string& from, const Said& said, const std::string& help);
// Returns the key in the answer of a role's server.
Found key_of_answer(const Said& said, const std::string& from);

// Returns the URL of a service that gets and gives secrets: the one that the user has set, or `usual`. Exit code 2 if
// that is not a URL, or would send them to another machine in the clear.
Result<std::string> safe_url(const AwsEndpoint& set, const std::string& usual);
// Returns names and values as a form or a query has them.
std::string form_of(const std::vector<std::pair<std::string_view, std::string>>& values);

}  // namespace ggufmill::remote
