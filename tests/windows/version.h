#pragma once
// A file whose bytes are all the same letter, and how it is written.

#include <memory>
#include <string>

#include "pipeline/io/io.h"
#include "tests/support/files.h"

namespace ggufmill {

inline constexpr std::size_t kHeaderBytes = 100;
inline constexpr std::size_t kPieceBytes = 64 << 10;
inline constexpr std::size_t kPieces = 8;
inline constexpr std::size_t kDataBytes = kPieces * kPieceBytes;

inline std::string version(char letter) { return std::string(kHeaderBytes + kDataBytes, letter); }

// Writes a version as an engine does: pieces in the background, then the header.
inline Status write_version(const std::string& path, char letter) {
  const std::string text = version(letter);
  BOOST_OUTCOME_TRY(std::unique_ptr<AtomicFile> file, AtomicFile::create(path, text.size(), {true}));
  BOOST_OUTCOME_TRY(std::unique_ptr<IoService> service, IoService::start(IoKind::kAuto));
  for (std::size_t i = 0; i < kPieces; ++i)
    service->write(*file, kHeaderBytes + i * kPieceBytes, as_bytes(text).subspan(i * kPieceBytes, kPieceBytes),
                   [](const Status&) {});
  service.reset();
  return file->seal(as_bytes(text).first(kHeaderBytes), kDataBytes);
}

}  // namespace ggufmill
