#pragma once
// Pickles with tensors, as torch.save writes them: protocols 2 to 5 of Python's pickle, of which only what a dictionary
// of tensors is made of is known. Nothing is looked up or called: a name is one of a short list, or an error. Source:
// CPython, Lib/pickletools.py; PyTorch, torch/_utils.py and torch/serialization.py.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/core/types.h"
#include "pipeline/io/byte_source.h"

namespace ggufmill::huggingface {

// Bytes that tensors are views of. It has `elements` of `type`, or bytes where that is null.
struct PickledStorage {
  const TypeInfo* type = nullptr;
  std::string key;
  std::uint64_t elements = 0;
};

struct PickledTensor {
  const TypeInfo* type = nullptr;
  std::size_t storage = 0;
  std::uint64_t offset = 0;                // in elements
  std::vector<std::uint64_t> dims, steps;  // the slowest first; steps in elements
};

// An object: what it is, and for numbers, texts and containers where its value is.
struct Pickled {
  enum class Kind : std::uint8_t {
    kNone,
    kBool,
    kNumber,      // of 64 bits
    kLongNumber,  // one of more, as its bytes
    kReal,
    kText,
    kBytes,
    kTuple,
    kList,
    kDictionary,
    kName,  // of a class or function
    kStorage,
    kTensor,
  };
  Kind kind = Kind::kNone;
  std::uint64_t value = 0;  // a number, or an index
};
std::string_view describe(Pickled::Kind kind);  // "a tuple"

// Reads one pickle after another of a part of a file.
class PickleReader {
 public:
  // From `begin` to `end` of the file, of which the pickles together may have kMostBytes.
  PickleReader(const ByteSource& file, std::uint64_t begin, std::uint64_t end);
  PickleReader(const PickleReader&) = delete;
  PickleReader& operator=(const PickleReader&) = delete;
  ~PickleReader();

  // Exit code 4, with the byte, for everything that a dictionary of tensors has no use for.
  Result<Pickled> read();
  // Where the next pickle begins.
  std::uint64_t at() const;

  // Values of what was read.
  std::string_view text(Pickled object) const;              // also bytes, and a long number's
  const std::vector<Pickled>& items(Pickled object) const;  // of a dictionary key, value, key, ...
  const PickledTensor& tensor(Pickled object) const;
  const std::vector<PickledStorage>& storages() const;  // of all pickles, each key once

  static constexpr std::uint64_t kMostBytes = 64 << 20;
  static constexpr std::size_t kMostObjects = 4'000'000;
  static constexpr std::size_t kMostDimensions = 8;

 private:
  class Machine;
  std::unique_ptr<Machine> machine_;
};

}  // namespace ggufmill::huggingface
