#pragma once
// A folder in which the program under test runs, for Catch2 tests of small files; reads models completely into memory.

#include <map>
#include <string>
#include <vector>

#include "pipeline/core/metadata.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace ggufmill::golden {

struct TensorBytes {
  std::string type;
  std::string bytes;
  bool operator==(const TensorBytes&) const = default;
};

struct ModelFile {
  std::vector<MetadataEntry> metadata;
  std::map<std::string, TensorBytes> tensors;  // by name
  std::uint64_t misaligned = 0;                // tensors that do not start at a multiple of general.alignment
};

// Reads a file or, given the first file of a shard set, all of them. Throws std::runtime_error.
ModelFile read_model(const std::string& path);

using Words = std::vector<std::string>;

struct Workplace {
  TempDir folder;

  std::string file(const std::string& name) const { return folder.file(name); }
  ProcessResult run(Words words) const {
    words.insert(words.begin(), GGUFMILL_PROGRAM);
    return run_process(words, folder.path());
  }
  // Runs the program, which must succeed.
  void must(const Words& words) const {
    const ProcessResult result = run(words);
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
  }
  void quantize(const Words& words) const {
    Words all = {"quantize", "-q", "--overwrite"};
    all.insert(all.end(), words.begin(), words.end());
    must(all);
  }
  ModelFile read(const std::string& name) const { return read_model(file(name)); }
  void pipeline(const std::string& text) const {
    write_text(file("job.yaml"), "version: 1\n" + text);
    must({"run", "job.yaml", "-q"});
  }
};

// Clears bits so that no F16 has an exponent of all ones.
inline void make_finite(GgufBuilder& builder) {
  for (GgufBuilder::TensorSpec& tensor : builder.tensors)
    for (char& byte : tensor.data) byte = static_cast<char>(byte & 0x3b);
}

}  // namespace ggufmill::golden
