#include "pipeline/api/publish/result_file.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "pipeline/api/reports.h"
#include "pipeline/core/text.h"
#include "pipeline/io/json_file.h"
#include "pipeline/io/output_target.h"
#include "pipeline/io/own_file.h"
#include "pipeline/io/platform/files.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/platform/machine.h"
#include "pipeline/io/platform/process.h"
#include "pipeline/io/source_path.h"
#include "pipeline/io/store_scheme.h"

namespace ggufmill {
namespace {

constexpr std::size_t kPiece = 1 << 20;

// Calls `take` with the bytes of a file, in order.
Status read_pieces(const std::string& path,
                   const std::function<Status(std::uint64_t offset, std::span<const std::byte> piece)>& take) {
  BOOST_OUTCOME_TRY(const auto file, open_source(path));
  std::vector<std::byte> piece(kPiece);
  for (std::uint64_t at = 0; at < file->bytes(); at += kPiece) {
    const auto bytes = static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, file->bytes() - at));
    BOOST_OUTCOME_TRY(file->read(at, std::span(piece).first(bytes)));
    BOOST_OUTCOME_TRY(take(at, std::span(piece).first(bytes)));
  }
  return ok();
}

std::string key_of(const std::string& path) {
  const std::string parts[] = {"file", fs::absolute(path).lexically_normal().string()};
  return result_key(parts);
}

// Returns the beginning of the names of folders that processes of this machine make for `path`. The number of the
// process, "-", and random letters follow. Processes of other machines may still run.
std::string unfinished_start(const fs::path& path) {
  return fmt::format("{}.unfinished-{}-", path.filename().string(), host_name().substr(0, 40));
}

// Removes the folders that processes which no longer run left in `parent`. Their names begin with `start`.
void remove_leftovers(const fs::path& parent, const std::string& start) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(parent, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(start)) continue;
    std::uint64_t owner = 0;
    const char* const end = name.data() + name.size();
    const auto [after, fault] = std::from_chars(name.data() + start.size(), end, owner);
    const bool is_ours =
        fault == std::errc() && after != end && *after == '-' && end - after > 1 && owner != 0 &&
        std::all_of(after + 1, end, [](char c) { return std::isalnum(static_cast<unsigned char>(c)); });
    FileStatus info;
    if (!is_ours || is_process(owner)) continue;
    if (get_status(kCurrentFolder, entry.path().string(), Links::kNoFollow, info) && info.is_folder() &&
        info.owner == own_user())
      fs::remove_all(entry.path(), error);
  }
}

}  // namespace

Result<ProgramFile> ProgramFile::create(std::string path, const std::string& ending) {
  const fs::path target(path);
  const fs::path parent = target.has_parent_path() ? target.parent_path() : fs::path(".");
  const std::string start = unfinished_start(target);
  remove_leftovers(parent, start);
  BOOST_OUTCOME_TRY(std::string folder,
                    make_private_folder((parent / fmt::format("{}{}-", start, process_id())).string()));
  return ProgramFile(std::move(path), ending, std::move(folder));
}

ProgramFile::ProgramFile(ProgramFile&& other) noexcept
    : path_(std::move(other.path_)), ending_(std::move(other.ending_)), folder_(std::exchange(other.folder_, {})) {}

ProgramFile::~ProgramFile() {
  std::error_code error;
  if (!folder_.empty()) fs::remove_all(folder_, error);
}

std::string ProgramFile::path() const { return folder_ + "/file" + ending_; }

Status ProgramFile::finish() const {
  std::error_code error;
  fs::permissions(path(), fs::perms::group_write | fs::perms::others_write, fs::perm_options::remove, error);
  if (!error) fs::rename(path(), path_, error);
  if (!error) return ok();
  Error failed = io_error(path_, "rename the file", error.value());
  failed.help = "if something else has this name, remove it, or write the outputs to a folder of your own";
  return failed;
}

Result<std::string> hash_of(const std::string& path) {
  const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state(XXH3_createState(), XXH3_freeState);
  if (!state) throw std::bad_alloc();
  XXH3_128bits_reset(state.get());
  BOOST_OUTCOME_TRY(read_pieces(path, [&](std::uint64_t, std::span<const std::byte> piece) -> Status {
    XXH3_128bits_update(state.get(), piece.data(), piece.size());
    return ok();
  }));
  const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

bool is_text_at(const std::string& path, const std::string& text) {
  constexpr std::uint64_t kMaxTextBytes = 64 << 20;
  const auto there = is_file(path) ? read_text_file(path, kMaxTextBytes) : Result<std::string>(std::string());
  return there && !text.empty() && there.value() == text;
}

bool have_same_bytes(const std::string& a, const std::string& b) {
  const auto first = hash_of(a), second = hash_of(b);
  return first && second && first.value() == second.value();
}

Status StepFiles::check(const std::string& path, bool overwrite) const {
  if (overwrite || !is_file(path)) return ok();
  const auto hash = hash_of(path);
  if (hash && std::ranges::count(written_to(path), hash.value()) > 0) return ok();
  return target_exists(path);
}

std::vector<std::string> StepFiles::written_to(const std::string& path) const {
  std::vector<std::string> hashes;
  const auto known = results_.find(key_of(path));
  const boost::json::value* list = known ? known->if_contains("hashes") : nullptr;
  if (list && list->is_array())
    for (const boost::json::value& hash : list->get_array())
      if (hash.is_string()) hashes.emplace_back(hash.get_string());
  return hashes;
}

Status StepFiles::remember(const std::string& path, const std::vector<std::string>& hashes) const {
  return results_.add(key_of(path), {{"hashes", boost::json::array(hashes.begin(), hashes.end())}});
}

Status StepFiles::replace(const std::string& path, const std::string& hash, bool overwrite,
                          const std::function<Status()>& write) const {
  BOOST_OUTCOME_TRY(check(path, overwrite));
  // A run that is killed leaves the file that was there or the new one: both may be replaced by the next run.
  std::vector<std::string> either{hash};
  if (is_file(path)) {
    BOOST_OUTCOME_TRY(std::string before, hash_of(path));
    either.push_back(std::move(before));
  }
  BOOST_OUTCOME_TRY(remember(path, either));
  BOOST_OUTCOME_TRY(write());
  return remember(path, {hash});
}

Status StepFiles::copy(const std::string& from, const std::string& to, bool overwrite) const {
  if (is_file(to) && have_same_bytes(from, to)) return ok();
  BOOST_OUTCOME_TRY(const std::string hash, hash_of(from));
  return replace(to, hash, overwrite, [&]() -> Status {
    BOOST_OUTCOME_TRY(const auto source, open_source(from));
    BOOST_OUTCOME_TRY(const auto store, create_store({{to, {}, source->bytes()}}, {.overwrite = true}));
    BOOST_OUTCOME_TRY(read_pieces(
        from, [&](std::uint64_t offset, std::span<const std::byte> piece) { return store->write(0, offset, piece); }));
    const std::uint64_t written[] = {source->bytes()};
    BOOST_OUTCOME_TRY(store->seal(written));
    return store->publish();
  });
}

Status StepFiles::write(const std::string& path, const std::string& text, bool overwrite) const {
  return replace(path, text_hash(text), overwrite, [&] { return write_text(path, text, true); });
}

}  // namespace ggufmill
