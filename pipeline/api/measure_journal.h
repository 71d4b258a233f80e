#pragma once
// The journal of a measurement: a file next to its result with one line for each tensor measured. An interrupted
// measurement resumes from it; one that is split into parts merges the tensors of all parts.

#include <map>
#include <span>
#include <string>
#include <vector>

#include "pipeline/core/type_module.h"
#include "pipeline/io/descriptor.h"
#include "stages/quantize/measurement.h"

namespace ggufmill {

// Each line consists of the 64-bit XXH3 of the rest in hexadecimal digits, a space, and {ggufmill, tensor, matrices} in
// JSON, with numbers that round-trip exactly. The hash is seeded with a hash of the kernel modules of foreign types, or
// 0 if there are none. Lines that are damaged, or were written by another version or with other modules, are ignored.
// Not thread-safe.
class MeasureJournal {
 public:
  // Reads the journal at `path`, or creates the file if it is missing. Fails with exit code 75 if another process is
  // using it, 4 if the file is not such a journal. If the path is empty, or the file may belong to somebody else
  // (own_file.h), nothing is recorded; in the latter case warnings() says so.
  static Result<MeasureJournal> open(const std::string& path, const std::vector<TypeModule>& modules);

  // Also takes the tensors from another journal, provided that it belongs to this user alone.
  Status read_also(const std::string& path);
  // Returns the tensor with that identity and exactly these types; null if it still has to be measured.
  const MeasuredTensor* find(const std::string& made_of, const std::vector<const TypeInfo*>& types) const;
  const std::vector<std::string>& warnings() const { return warnings_; }
  // Appends tensors; they are on disk when the call returns.
  Status add(std::span<const MeasuredTensor> tensors);

 private:
  Status open_file();
  void take(std::string_view text);

  std::string path_;
  std::uint64_t seed_ = 0;
  std::vector<std::string> warnings_;
  Descriptor file_;
  std::uint64_t end_ = 0;                        // offset at which the next line is written
  std::map<std::string, MeasuredTensor> known_;  // by MeasuredTensor::made_of
};

}  // namespace ggufmill
