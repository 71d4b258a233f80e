#include "pipeline/io/remote/remote_source.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "pipeline/core/text.h"
#include "pipeline/io/io_service.h"
#include "pipeline/io/remote/hub.h"
#include "pipeline/io/remote/server_text.h"
#include "pipeline/io/transfer.h"

namespace ggufmill::remote {
namespace {

constexpr std::size_t kFirstWindow = 1 << 20, kLargestWindow = 8 << 20;
constexpr std::size_t kMaxWhole = 16 << 20;
constexpr std::size_t kXetHashDigits = 64;
constexpr std::size_t kDrained = 64 << 10;  // bytes of an error page to read: cheaper than a new connection

constexpr std::string_view kDownload = "download the file and give its path";

// Parsed "bytes 0-99/1000", or "bytes */1000" for a range past the end.
struct ContentRange {
  std::uint64_t first = 0, last = 0, total = 0;
  bool has_bytes = false;
};

std::optional<ContentRange> parse_range(std::string_view text) {
  ContentRange range;
  const auto number = [&](std::uint64_t& into) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
    if (error != std::errc()) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return true;
  };
  const auto skip = [&](std::string_view word) {
    if (!text.starts_with(word)) return false;
    text.remove_prefix(word.size());
    return true;
  };
  if (!skip("bytes ")) return {};
  if (!skip("*")) {
    if (!number(range.first) || !skip("-") || !number(range.last)) return {};
    range.has_bytes = range.first <= range.last;
    if (!range.has_bytes) return {};
  }
  if (!skip("/") || !number(range.total) || !text.empty()) return {};
  if (range.has_bytes && range.last >= range.total) return {};
  return range;
}

bool is_refused(const Answer& answer) {
  return answer.status == 401 || answer.status == 403 || answer.status == 404 || answer.status == 410;
}

}  // namespace

// Result of one request, or of several for one range.
struct RemoteSource::Attempt {
  Answer answer{};
  Access access{};
  std::size_t bytes = 0;            // that arrived
  std::size_t wanted = 0;           // that the response announced
  std::optional<SourceFile> found;  // the object as described by the response
  std::vector<std::byte> whole{};   // the whole of a small file, if the server does not support ranges
};

Place RemoteSource::place() const {
  const std::scoped_lock lock(mutex_);
  return last_.value_or(origin_);
}

// The version is the hub's identifier of the content; else a strong ETag; else a weak one with the time of the last
// change.
Result<SourceFile> RemoteSource::version_of(const Answer& answer, const Place& place, std::uint64_t bytes) const {
  std::string tag(answer.header("etag"));
  std::int64_t modified = 0;
  if (address_.scheme->has_revisions() && place.is_redirected) {
    const std::scoped_lock lock(mutex_);
    tag = hub_tag_.empty() ? fmt::format("{} {}", hub_commit_, address_.path) : hub_tag_;
  } else if (tag.empty() || tag.starts_with("W/")) {
    modified = answer.modified * 1'000'000'000;
    if (modified == 0)
      return input_error(address_.text, "the server sends neither a strong ETag nor the time of the last change",
                         "a change while the file is read could not be detected: download it and give its path");
  }
  return SourceFile{address_.text, bytes, tag.empty() ? 0 : XXH3_64bits(tag.data(), tag.size()), modified};
}

// Reads the headers of a response, or returns what is wrong with them.
Status RemoteSource::read_headers(const Answer& answer, const Place& place, std::uint64_t first, std::size_t most,
                                  const SourceFile* known, Attempt& attempt) const {
  const std::string_view coding = answer.header("content-encoding"), stated = answer.header("content-range");
  if (!coding.empty() && coding != "identity")
    return input_error(address_.text, "the server compresses its responses", std::string(kDownload));
  const std::optional<ContentRange> range = parse_range(stated);
  if (!range)
    return input_error(address_.text,
                       fmt::format("the server does not report which part of the file it sends (Content-Range {})",
                                   quoted_answer(stated)),
                       std::string(kDownload));
  BOOST_OUTCOME_TRY(SourceFile found, version_of(answer, place, range->total));
  if (known && !is_same(*known, found)) return changed(*known, found);
  attempt.found = std::move(found);
  if (!range->has_bytes) return ok();
  attempt.wanted = range->last - range->first + 1;
  if (range->first != first || attempt.wanted > most)
    return input_error(address_.text,
                       fmt::format("the server sends bytes {} to {}, but {} to {} were requested", range->first,
                                   range->last, first, first + most - 1),
                       std::string(kDownload));
  std::uint64_t length = 0;
  const std::string_view text = answer.header("content-length");
  const bool has_length = std::from_chars(text.data(), text.data() + text.size(), length).ec == std::errc();
  if (has_length && length != attempt.wanted)
    return input_error(address_.text, fmt::format("the server sends {} bytes but announced {}", length, attempt.wanted),
                       std::string(kDownload));
  return ok();
}

// Makes one request for `into`, of an object that is `known` or not (null).
Result<RemoteSource::Attempt> RemoteSource::ask(std::uint64_t offset, std::span<std::byte> into,
                                                const SourceFile* known, bool from_origin) const {
  Attempt attempt;
  Place at = from_origin ? origin_ : place();
  const bool was_redirected = at.is_redirected;
  Status read = ok();
  std::size_t drained = 0;
  const bool may_be_whole = !known && offset == 0 && address_.scheme->has_revisions();
  const auto take = [&](const Answer& answer, std::span<const std::byte> piece) {
    if (answer.status == 200 && may_be_whole) {
      attempt.whole.insert(attempt.whole.end(), piece.begin(), piece.end());
      return attempt.whole.size() <= kMaxWhole;
    }
    if (answer.status != 206) return answer.status != 200 && (drained += piece.size()) <= kDrained;
    if (!attempt.found) read = read_headers(answer, at, offset, into.size(), known, attempt);
    if (!read) return false;
    if (piece.size() > attempt.wanted - attempt.bytes) {
      read = input_error(address_.text,
                         fmt::format("the server sends more than the {} bytes that it announced", attempt.wanted));
      return false;
    }
    std::memcpy(into.data() + attempt.bytes, piece.data(), piece.size());
    attempt.bytes += piece.size();
    return true;
  };
  const auto look = [&](const Answer& answer) {
    if (origin_of(at.access.url) == origin_of(origin_.access.url)) remember(answer);
  };
  const std::vector<std::string> range = {fmt::format("Range: bytes={}-{}", offset, offset + into.size() - 1)};
  const std::uint64_t most = may_be_whole ? std::max(into.size(), kMaxWhole) : into.size();
  BOOST_OUTCOME_TRY(attempt.answer, follow(at, address_, range, settings_, take, look, most));
  BOOST_OUTCOME_TRY(read);
  attempt.access = at.access;
  if (const auto reason = attempt.answer.header("x-reason"); at.is_by_xet && !reason.empty()) {
    attempt.answer.problem = fmt::format("hf_xet says: {}", quoted_answer(reason));
    attempt.answer.outcome = Answer::Outcome::kBroken;
  }
  const Answer& answer = attempt.answer;
  if (answer.outcome != Answer::Outcome::kAnswered) return attempt;
  if (at.is_redirected && !at.is_by_xet && is_refused(answer)) {
    // The redirect target may have been valid for a limited time only.
    if (was_redirected) return ask(offset, into, known, true);
    BOOST_OUTCOME_TRY(const bool is_by_xet, use_xet());
    if (is_by_xet) return ask(offset, into, known, false);
  }
  if (answer.status == 416) {
    BOOST_OUTCOME_TRY(read_headers(answer, at, offset, into.size(), known, attempt));
  }
  if (!at.is_redirected) remember(answer);
  if (answer.status == 200) {
    if (attempt.whole.empty() || attempt.whole.size() > kMaxWhole)
      return input_error(address_.text, "the server does not support partial downloads (it ignores Range)",
                         std::string(kDownload));
    BOOST_OUTCOME_TRY(attempt.found, version_of(answer, at, attempt.whole.size()));
  }
  const std::scoped_lock lock(mutex_);
  if (at.is_redirected && answer.status == 206) last_ = at;
  return attempt;
}

// Records the hub's description of a file, which is in its own response or in its redirect.
void RemoteSource::remember(const Answer& answer) const {
  const std::scoped_lock lock(mutex_);
  if (const auto tag = answer.header("x-linked-etag"); !tag.empty()) hub_tag_ = tag;
  if (const auto commit = answer.header("x-repo-commit"); !commit.empty()) hub_commit_ = commit;
  const std::string_view hash = answer.header("x-xet-hash"), size = answer.header("x-linked-size");
  std::uint64_t bytes = 0;
  const auto number = std::from_chars(size.data(), size.data() + size.size(), bytes);
  const bool is_size = number.ec == std::errc() && number.ptr == size.data() + size.size();
  if (is_size && hash.size() == kXetHashDigits && hash.find_first_not_of("0123456789abcdef") == hash.npos)
    hub_xet_ = {std::string(hash), bytes};
}

Result<bool> RemoteSource::use_xet() const {
  const std::scoped_lock lock(xet_mutex_);
  const auto file = [&] {
    const std::scoped_lock also(mutex_);
    return hub_xet_;
  }();
  if (!address_.scheme->has_revisions() || file.hash.empty()) return false;
  if (!xet_) {
    BOOST_OUTCOME_TRY(const Access tokens, access_to_hub(fmt::format("/api/models/{}/xet-read-token/{}", address_.place,
                                                                     address_.revision)));
    BOOST_OUTCOME_TRY(xet_, XetDownload::start(address_, file, tokens, settings_));
  }
  const std::scoped_lock also(mutex_);
  last_ = Place{xet_->access(), true, true};
  return true;
}

// Reads all of `into`, or what there is up to the end of the object.
Result<RemoteSource::Attempt> RemoteSource::fetch(std::uint64_t offset, std::span<std::byte> into,
                                                  const SourceFile* known, bool from_origin) const {
  Attempts attempts(address_, settings_);
  std::optional<SourceFile> found;
  for (std::size_t done = 0;; from_origin = false) {
    BOOST_OUTCOME_TRY(Attempt attempt, ask(offset + done, into.subspan(done),
                                           known   ? known
                                           : found ? &*found
                                                   : nullptr,
                                           from_origin));
    done += attempt.bytes;
    if (attempt.found) found = attempt.found;
    if (!attempt.whole.empty() && attempt.answer.outcome == Answer::Outcome::kAnswered) return attempt;
    if (found && (done == into.size() || offset + done >= found->bytes)) {
      attempt.found = found;
      attempt.bytes = done;
      return attempt;
    }
    BOOST_OUTCOME_TRY(attempts.wait_after(attempt.answer, attempt.access));
  }
}

Result<std::shared_ptr<const RemoteSource>> RemoteSource::open(Address address, const Settings& settings, Use use) {
  BOOST_OUTCOME_TRY(Access access, address.scheme->access_to(address));
  const std::shared_ptr<RemoteSource> source(
      new RemoteSource(std::move(address), settings, Place{std::move(access), false}));
  std::vector<std::byte> beginning(use == Use::kHeader ? kFirstWindow : 1);
  BOOST_OUTCOME_TRY(Attempt first, source->fetch(0, beginning, nullptr, false));
  if (!source->address_.is_pinned() && Address{source->address_.at(source->hub_commit_)}.is_pinned()) {
    source->address_ = source->address_.at(source->hub_commit_);
    BOOST_OUTCOME_TRY(access, source->address_.scheme->access_to(source->address_));
    source->origin_ = {std::move(access), false};
    first.found->path = source->address_.text;
  }
  source->description_ = std::make_shared<const SourceFile>(*first.found);
  if (use == Use::kRun) return std::shared_ptr<const RemoteSource>(source);
  source->window_ = std::make_unique<Window>();
  beginning.resize(first.bytes);
  source->window_->bytes = first.whole.empty() ? std::move(beginning) : std::move(first.whole);
  source->window_->next_bytes = 2 * kFirstWindow;
  return std::shared_ptr<const RemoteSource>(source);
}

Status RemoteSource::check_unchanged() const {
  std::byte one{};
  BOOST_OUTCOME_TRY(fetch(0, std::span(&one, 1), description_.get(), true));
  return ok();
}

Status RemoteSource::read(std::uint64_t offset, std::span<std::byte> into) const {
  if (offset > bytes() || into.size() > bytes() - offset) return ends_early(path(), offset, into.size());
  if (into.empty()) return ok();
  if (!window_ || into.size() >= kLargestWindow) {
    BOOST_OUTCOME_TRY(fetch(offset, into, description_.get(), false));
    return ok();
  }
  const std::scoped_lock lock(window_->mutex);
  while (!into.empty()) {
    const std::uint64_t end = window_->offset + window_->bytes.size();
    if (offset < window_->offset || offset >= end) {
      if (offset != end) window_->next_bytes = kFirstWindow;  // not sequential
      const std::size_t wanted = std::max(window_->next_bytes, into.size());
      std::vector<std::byte> next(std::min<std::uint64_t>(wanted, bytes() - offset));
      BOOST_OUTCOME_TRY(fetch(offset, next, description_.get(), false));
      window_->offset = offset;
      window_->bytes = std::move(next);
      window_->next_bytes = std::min(kLargestWindow, 2 * window_->next_bytes);
    }
    const std::size_t at = offset - window_->offset, bytes = std::min(into.size(), window_->bytes.size() - at);
    std::memcpy(into.data(), window_->bytes.data() + at, bytes);
    offset += bytes;
    into = into.subspan(bytes);
  }
  return ok();
}

void RemoteSource::start_read(IoService& io, std::uint64_t offset, std::span<std::byte> into, Completion done) const {
  io.wait_for([this, offset, into] { return read(offset, into); }, std::move(done));
}

}  // namespace ggufmill::remote
