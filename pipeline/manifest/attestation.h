#pragma once
// The provenance of outputs: what they were made from, how, and by what, for readers who do not trust the place where
// they found them. As JSON, it is a statement of in-toto (v1) with the predicate of SLSA (provenance v1).

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/core/metadata.h"
#include "pipeline/core/type_module.h"

namespace ggufmill {

// A file of an output.
struct AttestedFile {
  std::string name, sha256;  // 64 hexadecimal digits
  std::uint64_t bytes = 0;
  std::string recipe{};                                           // empty: none
  std::vector<std::pair<std::string, std::uint64_t>> tensors{};   // XXH3 (64 bits) of the bytes of each
  std::vector<TypeModule> modules{};                              // for the foreign types that affected the bytes
  std::vector<std::pair<std::string, std::uint64_t>> metadata{};  // XXH3 (64 bits) of the type and bytes of each value
  std::string importance_file{};  // the path that the file records as its importance matrix; empty: none
};

// The key of a GGUF file under which `importance_file` is recorded.
inline constexpr std::string_view kImportanceFileKey = "quantize.imatrix.file";

// A file that was read.
struct AttestedSource {
  std::string name;         // the path in the pipeline file, or within the folder that this names
  bool is_address = false;  // `name` is an address: hf://ORG/NAME@COMMIT/FILE
  std::string sha256;
  std::uint64_t bytes = 0;
};

// A kernel module of the program that made the files.
struct AttestedModule {
  std::string name, version, isa, sha256;
};

struct Attestation {
  std::vector<AttestedFile> files;  // at least one
  std::string pipeline;             // what of the resolved pipeline file decides bytes, without folders of the machine
  std::vector<AttestedSource> sources;
  std::string ggufmill, llama_cpp;  // versions
  std::string isa;                  // of the kernels that ran
  std::vector<AttestedModule> modules;
};

// Returns the hashes of all values.
std::vector<std::pair<std::string, std::uint64_t>> hashes_of(const Metadata& metadata);

// Returns the statement in one line.
std::string write_statement(const Attestation& attestation);
// Exit code 4 if the text is not such a statement, or one of another builder.
Result<Attestation> read_statement(std::string_view text, const std::string& path);

}  // namespace ggufmill
