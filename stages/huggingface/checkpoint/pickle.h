#pragma once
// Reads pickles with tensors, as torch.save writes them: protocols 2 to 5 of Python's pickle, restricted to the
// constructs that make up a dictionary of tensors. Nothing is imported or called: a name must be on a short list,
// anything else is an error. Sources: CPython, Lib/pickletools.py; PyTorch, torch/_utils.py and
// torch/serialization.py.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/core/types.h"
#include "pipeline/io/byte_source.h"

namespace ggufmill::huggingface {

// Bytes that tensors are views of. The storage has `elements` elements of `type`, or that many bytes if `type` is
// null.
struct PickledStorage {
  const TypeInfo* type = nullptr;
  std::string key;
  std::uint64_t elements = 0;
};

struct PickledTensor {
  const TypeInfo* type = nullptr;
  std::size_t storage = 0;
  std::uint64_t offset = 0;                // in elements
  std::vector<std::uint64_t> dims, steps;  // slowest dimension first; steps in elements
};

// An object: its kind, and for numbers, texts and containers the value or its index.
struct Pickled {
  enum class Kind : std::uint8_t {
    kNone,
    kBool,
    kNumber,      // fits in 64 bits
    kLongNumber,  // wider than 64 bits, kept as bytes
    kReal,
    kText,
    kBytes,
    kTuple,
    kList,
    kDictionary,
    kName,  // name of a class or function
    kStorage,
    kTensor,
  };
  Kind kind = Kind::kNone;
  std::uint64_t value = 0;  // number or index
};
std::string_view describe(Pickled::Kind kind);  // "a tuple"

// Reads consecutive pickles from a part of a file.
class PickleReader {
 public:
  // Reads the range [begin, end) of the file. All pickles together may have at most kMaxBytes.
  PickleReader(const ByteSource& file, std::uint64_t begin, std::uint64_t end);
  PickleReader(const PickleReader&) = delete;
  PickleReader& operator=(const PickleReader&) = delete;
  ~PickleReader();

  // Reads the next pickle. Exit code 4, with the byte offset, for anything that a dictionary of tensors does not need.
  Result<Pickled> read();
  // Returns the position at which the next pickle begins.
  std::uint64_t at() const;

  // Accessors for the values of objects returned by read().
  std::string_view text(Pickled object) const;              // also for bytes and kLongNumber
  const std::vector<Pickled>& items(Pickled object) const;  // for a dictionary: key, value, key, ...
  const PickledTensor& tensor(Pickled object) const;
  const std::vector<PickledStorage>& storages() const;  // from all pickles; each key once

  static constexpr std::uint64_t kMaxBytes = 64 << 20;
  static constexpr std::size_t kMaxObjects = 4'000'000;
  static constexpr std::size_t kMaxDimensions = 8;

 private:
  class Machine;
  std::unique_ptr<Machine> machine_;
};

}  // namespace ggufmill::huggingface
