#pragma once
// A file whose bytes are all the same letter, for tests that interrupt its writer.

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <string>

#include "pipeline/io/io.h"
#include "pipeline/io/platform/filesystem.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

namespace ggufmill {

inline constexpr std::size_t kHeaderBytes = 100;
inline constexpr std::size_t kPieceBytes = 64 << 10;
inline constexpr std::size_t kPieces = 8;
inline constexpr std::size_t kDataBytes = kPieces * kPieceBytes;

inline std::string version(char letter) { return std::string(kHeaderBytes + kDataBytes, letter); }

// Writes a version as an engine does: pieces in the background, then the header.
inline Status write_version(const std::string& path, char letter, IoKind kind) {
  const std::string text = version(letter);
  BOOST_OUTCOME_TRY(std::unique_ptr<AtomicFile> file, AtomicFile::create(path, text.size(), {true}));
  BOOST_OUTCOME_TRY(std::unique_ptr<IoService> service, IoService::start(kind));
  std::atomic<bool> is_written = true;
  for (std::size_t i = 0; i < kPieces; ++i)
    service->write(*file, kHeaderBytes + i * kPieceBytes, as_bytes(text).subspan(i * kPieceBytes, kPieceBytes),
                   [&](const Status& status) {
                     if (!status) is_written = false;
                   });
  service.reset();
  if (!is_written) return io_error(path, "write", EIO);
  return file->seal(as_bytes(text).first(kHeaderBytes), kDataBytes);
}

inline std::string text_or_nothing(const std::string& path) {
  return fs::exists(path) ? read_text(path) : std::string();
}

// Returns true if the folder contains nothing but the file `out` and its temporary files.
inline bool has_only_temporaries(const TempDir& folder) {
  return std::ranges::all_of(names_in(folder.path()), [](const std::string& name) {
    return name == "out" || name.starts_with(".out.ggufmill-");
  });
}

}  // namespace ggufmill
