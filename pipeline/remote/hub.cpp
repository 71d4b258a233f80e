#include "pipeline/remote/hub.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <deque>
#include <mutex>
#include <utility>

#include "pipeline/core/text.h"
#include "pipeline/io/json_file.h"

namespace ggufmill::remote {
namespace {

constexpr std::size_t kMostKept = 16;  // listings

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
    if (listings_.size() > kMostKept) listings_.pop_front();
  }

 private:
  std::mutex mutex_;
  std::deque<std::pair<std::string, std::shared_ptr<const Listing>>> listings_;
};

Result<std::string> document_at(const Address& address, const Access& access, const Settings& settings) {
  Attempts attempts(address, settings);
  while (true) {
    std::string text;
    Place place{access, false};
    const auto take = [&](const Answer&, std::span<const std::byte> piece) {
      text.append(reinterpret_cast<const char*>(piece.data()), piece.size());
      return text.size() <= kMaxJsonBytes;
    };
    BOOST_OUTCOME_TRY(const Answer answer, follow(place, address, {}, settings, take, [](const Answer&) {}));
    if (text.size() > kMaxJsonBytes) return input_error(address.text, "the hub's answer is larger than 64 MiB");
    if (answer.outcome == Answer::Outcome::kAnswered && answer.status == 200) return text;
    BOOST_OUTCOME_TRY(attempts.wait_after(answer, place.access));
  }
}

Result<Listing> parse_listing(const Address& address, std::string_view text) {
  BOOST_OUTCOME_TRY(const boost::json::value document, parse_json(address.text, text));
  const auto commit = json_string(document, "sha");
  const boost::json::array* files = json_array(document, "siblings");
  if (!commit || !address.at(*commit).is_pinned() || !files)
    return input_error(address.text, "the hub's answer does not name a commit or files",
                       "is HF_ENDPOINT the endpoint of a hub?");
  Listing listing{std::string(*commit), {}};
  for (const boost::json::value& each : *files) {
    const auto name = json_string(each, "rfilename");
    if (!name || !parse_address(address.file(*name).text))
      return input_error(address.text, "the hub's answer contains an invalid file name");
    listing.files.emplace_back(*name);
  }
  std::ranges::sort(listing.files);
  return listing;
}

}  // namespace

Result<std::shared_ptr<const Listing>> list_model(const Address& address, const Settings& settings) {
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

}  // namespace ggufmill::remote
