#pragma once
// Kinds of sources, by the scheme of their addresses. A new kind is one file that implements SourceScheme, and one row
// of source_schemes().

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/io/byte_source.h"

namespace ggufmill {

// Opens the sources of one scheme. Thread-safe; the functions are those of source_path.h and ByteSource::open(), which
// describe their errors.
class SourceScheme {
 public:
  virtual ~SourceScheme() = default;
  // Names of the scheme: "hf" for hf://ORG/NAME. Empty for local paths, which have no scheme.
  virtual std::span<const std::string_view> names() const = 0;
  virtual bool is_named(std::string_view scheme) const;

  virtual Result<std::shared_ptr<const ByteSource>> open(const std::string& path) const = 0;
  virtual Result<std::shared_ptr<const ByteSource>> open(const SourceFile& described, IoMode mode,
                                                         const std::atomic<bool>* stop) const = 0;
  virtual Result<std::string> pinned(const std::string& path) const { return path; }
  virtual bool is_file(const std::string& path) const = 0;
  virtual bool is_folder(const std::string&) const { return false; }
  virtual Result<std::vector<std::string>> paths_in(const std::string& folder) const = 0;
};

// All kinds of sources. Tests may append rows before they use any source; not thread-safe.
std::vector<const SourceScheme*>& source_schemes();
// Returns the scheme of a path. Exit code 2 for an address whose scheme is unknown.
Result<const SourceScheme*> find_source_scheme(const std::string& path);

// Files of this machine.
const SourceScheme& local_files();

}  // namespace ggufmill
