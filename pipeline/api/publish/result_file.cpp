#include "pipeline/api/publish/result_file.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "pipeline/api/reports.h"
#include "pipeline/io/json_file.h"
#include "pipeline/io/output_target.h"
#include "pipeline/io/source_path.h"
#include "pipeline/io/store_scheme.h"
#include "pipeline/manifest/manifest.h"

namespace ggufmill {
namespace {

namespace fs = std::filesystem;

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

}  // namespace

ProgramFile::ProgramFile(std::string path, const std::string& ending) : path_(std::move(path)) {
  const fs::path target(path_);
  const std::string start = target.filename().string() + ".unfinished-";
  unfinished_ = (target.parent_path() / fmt::format("{}{}{}", start, ::getpid(), ending)).string();
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(target.has_parent_path() ? target.parent_path() : ".", error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(start) || !name.ends_with(ending)) continue;
    const pid_t owner = std::atoi(name.c_str() + start.size());
    if (owner > 0 && ::kill(owner, 0) != 0 && errno == ESRCH) fs::remove(entry.path(), error);
  }
}

ProgramFile::~ProgramFile() {
  std::error_code error;
  fs::remove(unfinished_, error);
}

Status ProgramFile::finish() const {
  std::error_code error;
  fs::rename(unfinished_, path_, error);
  return error ? Status(io_error(path_, "rename the file", error.value())) : Status(ok());
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

Result<FileSum> sum_of(const std::string& path) {
  BOOST_OUTCOME_TRY(const auto file, open_source(path));
  Manifest one;
  one.files.push_back({path, file->bytes(), {}, {}});
  const FileReader read = [&](std::size_t, std::uint64_t at, std::span<std::byte> into) {
    return file->read(at, into);
  };
  BOOST_OUTCOME_TRY(sum_up(one, read, 1, nullptr));
  return FileSum{file->bytes(), one.files.front().sha256};
}

bool is_text_at(const std::string& path, const std::string& text) {
  constexpr std::uint64_t kMostTextBytes = 64 << 20;
  const auto there = is_file(path) ? read_text_file(path, kMostTextBytes) : Result<std::string>(std::string());
  return there && !text.empty() && there.value() == text;
}

bool have_same_bytes(const std::string& a, const std::string& b) {
  const auto first = hash_of(a), second = hash_of(b);
  return first && second && first.value() == second.value();
}

Status StepFiles::check(const std::string& path, bool overwrite) const {
  if (overwrite || !is_file(path)) return ok();
  const auto known = results_.find(key_of(path));
  const auto hash = hash_of(path);
  const boost::json::value* written = known ? known->if_contains("hash") : nullptr;
  if (hash && written && written->is_string() && written->get_string() == hash.value()) return ok();
  return target_exists(path);
}

Status StepFiles::remember(const std::string& path) const {
  BOOST_OUTCOME_TRY(const std::string hash, hash_of(path));
  return results_.add(key_of(path), {{"hash", hash}});
}

Status StepFiles::copy(const std::string& from, const std::string& to, bool overwrite) const {
  if (is_file(to) && have_same_bytes(from, to)) return ok();
  BOOST_OUTCOME_TRY(check(to, overwrite));
  BOOST_OUTCOME_TRY(const auto source, open_source(from));
  BOOST_OUTCOME_TRY(const auto store, create_store({{to, {}, source->bytes()}}, {.overwrite = true}));
  BOOST_OUTCOME_TRY(read_pieces(
      from, [&](std::uint64_t offset, std::span<const std::byte> piece) { return store->write(0, offset, piece); }));
  const std::uint64_t written[] = {source->bytes()};
  BOOST_OUTCOME_TRY(store->seal(written));
  BOOST_OUTCOME_TRY(store->publish());
  return remember(to);
}

Status StepFiles::write(const std::string& path, const std::string& text, bool overwrite) const {
  BOOST_OUTCOME_TRY(check(path, overwrite));
  BOOST_OUTCOME_TRY(write_text(path, text, true));
  return remember(path);
}

}  // namespace ggufmill
