// Scheme hf: models on the Hugging Face hub.

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <deque>
#include <mutex>
#include <set>
#include <utility>

#include "pipeline/core/json.h"
#include "pipeline/core/text.h"
#include "pipeline/io/child_environment.h"
#include "pipeline/io/gguf_files.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/platform/paths.h"
#include "pipeline/io/remote/credentials.h"
#include "pipeline/io/remote/hub.h"
#include "pipeline/io/remote/list_bounds.h"
#include "pipeline/io/remote/remote_source.h"
#include "pipeline/io/remote/server_text.h"

namespace ggufmill::remote {
namespace {

constexpr std::string_view kMain = "main";

// A model at a revision, as the hub describes it.
struct Listing {
  std::string commit;
  std::vector<std::string> files;  // paths with folders, sorted
};

constexpr std::size_t kMaxKept = 16;  // listings

// Cache of listings of commits, by URL.
class Kept {
 public:
  static Kept& all() {
    static auto* const kept = new Kept;  // never destroyed: threads may outlive main()
    return *kept;
  }
  std::shared_ptr<const Listing> find(const std::string& url) {
    const std::scoped_lock lock(mutex_);
    const auto found = std::ranges::find(listings_, url, [](const auto& each) { return each.first; });
    return found == listings_.end() ? nullptr : found->second;
  }
  void add(const std::string& url, std::shared_ptr<const Listing> listing) {
    const std::scoped_lock lock(mutex_);
    listings_.emplace_back(url, std::move(listing));
    if (listings_.size() > kMaxKept) listings_.pop_front();
  }

 private:
  std::mutex mutex_;
  std::deque<std::pair<std::string, std::shared_ptr<const Listing>>> listings_;
};

// Returns true if nobody else can read data sent there: HTTPS, or this machine.
bool is_private(const std::string& url) {
  const auto place = place_of_url(url);
  return place && (place->scheme == "https" || (place->scheme == "http" && is_this_machine(*place)));
}

constexpr const char* kTokenPathVariable = "HF_TOKEN_PATH";

// Returns the path of the file that `hf auth login` writes.
std::string token_file() {
  if (std::string path = environment(kTokenPathVariable); !path.empty()) return path;
  if (const std::string home = environment("HF_HOME"); !home.empty()) return home + "/token";
  if (const std::string cache = environment("XDG_CACHE_HOME"); !cache.empty()) return cache + "/huggingface/token";
  const std::string home = home_folder();
  return home.empty() ? "" : home + "/.cache/huggingface/token";
}

Result<std::string> hub_token() {
  if (std::string token(trimmed(environment({kHubTokenVariable, kOldHubTokenVariable}))); !token.empty())
    return checked_secret(std::move(token), "HF_TOKEN");
  const std::string file = token_file();
  BOOST_OUTCOME_TRY(const std::string text, text_of_file(file, kTokenPathVariable));
  return checked_secret(std::string(trimmed(std::string_view(text).substr(0, text.find('\n')))),
                        fmt::format("'{}'", file));
}

}  // namespace

Result<Access> access_to_hub(const std::string& path) {
  Access access;
  BOOST_OUTCOME_TRY(const std::string endpoint,
                    endpoint_of(environment("HF_ENDPOINT"), "HF_ENDPOINT", "https://huggingface.co"));
  access.url = endpoint + path;
  BOOST_OUTCOME_TRY(const std::string token, hub_token());
  if (token.empty()) return access;
  access.token_withheld = !is_private(access.url);
  if (access.token_withheld) return access;
  access.headers.push_back("Authorization: Bearer " + token);
  access.is_anonymous = false;
  return access;
}

namespace {

// Returns access to the hub's description of a model at a revision: a JSON document that lists its files.
Result<Access> access_to_list(const Address& address) {
  return access_to_hub(fmt::format("/api/models/{}/revision/{}", address.place, address.revision));
}

Result<std::string> document_at(const Address& address, const Access& access, const Settings& settings) {
  Attempts attempts(address, settings);
  while (true) {
    std::string text;
    Place place{access, false};
    const auto take = [&](const Answer&, std::span<const std::byte> piece) {
      text.append(reinterpret_cast<const char*>(piece.data()), piece.size());
      return text.size() <= kMaxHubAnswer;
    };
    BOOST_OUTCOME_TRY(const Answer answer,
                      follow(
                          place, address, {}, settings, take, [](const Answer&) {}, kMaxHubAnswer));
    if (text.size() > kMaxHubAnswer)
      return input_error(address.text, fmt::format("the hub's answer is larger than {}", human_bytes(kMaxHubAnswer)));
    if (answer.outcome == Answer::Outcome::kAnswered && answer.status == 200) return text;
    BOOST_OUTCOME_TRY(attempts.wait_after(answer, place.access));
  }
}

class Hub final : public RemoteScheme {
 public:
  std::span<const std::string_view> names() const override { return kNames; }
  bool has_revisions() const override { return true; }
  Result<Address> parse_address(std::string_view text) const override;
  Result<Access> access_to(const Address& address) const override {
    return access_to_hub(
        fmt::format("/{}/resolve/{}/{}", address.place, address.revision, percent_encoded(address.path)));
  }
  std::string how_to_get_in(const Access& access) const override;
  Status check_is_file(const Address& address) const override;
  Result<std::string> pin(const Address& address) const override;
  bool is_file_at(const Address& address) const override;
  bool is_folder_at(const Address& address) const override;
  Result<std::vector<std::string>> paths_at(const Address& address) const override;

 private:
  Result<Listing> parse_listing(const Address& address, std::string_view text) const;
  // Returns the address of the GGUF file that the type of an address selects, at a commit.
  Result<Address> file_of_type(const Address& address) const;
  // Queries the hub (GET /api/models/ORG/NAME/revision/REVISION). Listings of commits are cached, since commits do not
  // change. Exit codes as for RemoteSource::open().
  Result<std::shared_ptr<const Listing>> list_model(const Address& address, const Settings& settings) const;

  static constexpr std::string_view kNames[] = {"hf"};
};

Result<Address> Hub::parse_address(std::string_view text) const {
  std::string_view rest = without_scheme(text);
  if (rest.starts_with("models/")) rest.remove_prefix(7);
  if (rest.starts_with("datasets/") || rest.starts_with("spaces/"))
    return bad_address(text, "does not name a model", kHubHelp);
  const std::size_t slash = rest.find('/');
  if (slash == rest.npos) return bad_address(text, "does not name an organization and a model", kHubHelp);
  std::size_t end = rest.find('/', slash + 1);
  std::string_view repository = rest.substr(0, end);
  Address address{.scheme = this};
  if (const std::size_t colon = repository.find(':'); colon != repository.npos) {
    address.type = repository.substr(colon + 1);
    repository = repository.substr(0, colon);
    if (!is_plain_name(address.type) || end != rest.npos)
      return bad_address(text, "does not end with a type of GGUF", "for example hf://ORG/NAME:Q4_K_M");
  }
  const std::size_t at = repository.find('@');
  address.place = repository.substr(0, at);
  address.revision = at == repository.npos ? kMain : repository.substr(at + 1);
  if (end != rest.npos) address.path = rest.substr(end + 1);
  while (address.path.ends_with('/')) address.path.pop_back();
  const std::string_view organization = std::string_view(address.place).substr(0, slash);
  const std::string_view name = std::string_view(address.place).substr(std::min(slash + 1, address.place.size()));
  if (!is_plain_name(organization) || !is_plain_name(name))
    return bad_address(text, "does not name an organization and a model", kHubHelp);
  const auto is_of_revision = [](char c) { return is_plain(c) || c == '%'; };
  if (address.revision.empty() || !std::ranges::all_of(address.revision, is_of_revision))
    return bad_address(text, "does not have a valid revision",
                       "a revision is a branch, a tag, or a commit; write / in it as %2F: @refs%2Fpr%2F1");
  if (!address.path.empty() && !is_plain_path(address.path)) return bad_address(text, "does not name a file", kHubHelp);
  return address.type.empty() ? address.file(address.path) : address.at(address.revision);
}

std::string Hub::how_to_get_in(const Access& access) const {
  if (access.token_withheld)
    return "the token is not sent, because HF_ENDPOINT is plain HTTP to another machine: use https";
  return access.is_anonymous ? "check the name; for a private or gated model, set HF_TOKEN or run `hf auth login`"
                             : "check the name; the token may not grant access, or the model's terms must first be "
                               "accepted on its page";
}

Result<Listing> Hub::parse_listing(const Address& address, std::string_view text) const {
  BOOST_OUTCOME_TRY(const boost::json::value document, parse_json(address.text, text));
  const auto commit = json_string(document, "sha");
  const boost::json::array* files = json_array(document, "siblings");
  if (!commit || !address.at(*commit).is_pinned() || !files)
    return input_error(address.text, "the hub's answer does not name a commit or files",
                       "is HF_ENDPOINT the endpoint of a hub?");
  BOOST_OUTCOME_TRY(ListBounds(address.text).add_page(files->size(), ""));
  Listing listing{std::string(*commit), {}};
  for (const boost::json::value& each : *files) {
    const auto name = json_string(each, "rfilename");
    if (!name || has_secret(*name) || !parse(address.file(*name).text))
      return input_error(address.text, "the hub's answer contains an invalid file name");
    listing.files.emplace_back(*name);
  }
  std::ranges::sort(listing.files);
  return listing;
}

Result<std::shared_ptr<const Listing>> Hub::list_model(const Address& address, const Settings& settings) const {
  const Address model = address.file("");
  BOOST_OUTCOME_TRY(const Access access, access_to_list(model));
  if (auto known = Kept::all().find(access.url)) return known;
  BOOST_OUTCOME_TRY(const std::string text, document_at(model, access, settings));
  BOOST_OUTCOME_TRY(Listing read, parse_listing(model, text));
  auto listing = std::make_shared<const Listing>(std::move(read));
  BOOST_OUTCOME_TRY(const Access of_commit, access_to_list(model.at(listing->commit)));
  Kept::all().add(of_commit.url, listing);
  return std::shared_ptr<const Listing>(std::move(listing));
}

Result<Address> Hub::file_of_type(const Address& address) const {
  BOOST_OUTCOME_TRY(const auto listing, list_model(address, Settings{}));
  if (const auto name = gguf_of_type(listing->files, address.type)) return address.at(listing->commit).file(*name);
  std::vector<std::string> names;
  for (const std::string& name : listing->files)
    if (name.ends_with(".gguf")) names.push_back(quoted_name(name));
  return input_error(address.text, fmt::format("the model has no GGUF file of type {}", quoted_name(address.type)),
                     names.empty() ? "it has no GGUF files" : fmt::format("it has {}", list_some(names)));
}

Status Hub::check_is_file(const Address& address) const {
  if (!address.path.empty()) return ok();
  return input_error(address.text, "is a model, not a file", "add the file's name: hf://ORG/NAME@REVISION/FILE");
}

Result<std::string> Hub::pin(const Address& address) const {
  if (!address.type.empty()) {
    BOOST_OUTCOME_TRY(const Address file, file_of_type(address));
    return file.text;
  }
  if (address.is_pinned()) return address.text;
  if (!address.path.empty()) {
    BOOST_OUTCOME_TRY(const auto source, RemoteSource::open(address, Settings{}, RemoteSource::Use::kRun));
    BOOST_OUTCOME_TRY(const Address opened, parse(source->path()));
    if (opened.is_pinned()) return opened.text;
  }
  BOOST_OUTCOME_TRY(const auto listing, list_model(address, Settings{}));
  return address.at(listing->commit).text;
}

bool Hub::is_file_at(const Address& address) const {
  if (!address.type.empty()) return true;  // pin() finds out
  const auto listing = list_model(address, Settings{});
  return !listing || std::ranges::binary_search(listing.value()->files, address.path);
}

// Returns the prefix of the names of the hub's files below a folder, "" for the model itself.
std::string below(const Address& folder) { return folder.path.empty() ? "" : folder.path + "/"; }

bool Hub::is_folder_at(const Address& address) const {
  if (address.path.empty()) return address.type.empty();
  const auto listing = list_model(address, Settings{});
  return listing && std::ranges::any_of(listing.value()->files,
                                        [&](const std::string& name) { return name.starts_with(below(address)); });
}

Result<std::vector<std::string>> Hub::paths_at(const Address& address) const {
  BOOST_OUTCOME_TRY(const auto listing, list_model(address, Settings{}));
  const std::string prefix = below(address);
  std::set<std::string> names;
  for (const std::string& name : listing->files)
    if (name.starts_with(prefix)) names.insert(name.substr(0, name.find('/', prefix.size())));
  std::vector<std::string> paths;
  for (const std::string& name : names) paths.push_back(address.file(name).text);
  return paths;
}

}  // namespace

const RemoteScheme& hub() {
  static const Hub scheme;
  return scheme;
}

}  // namespace ggufmill::remote
