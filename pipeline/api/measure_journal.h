#pragma once
// What a measurement has so far: a file beside its result, a line for each tensor that is done. A measurement that was
// ended early goes on from there; one that is made in parts takes the tensors of all parts.

#include <map>
#include <span>
#include <string>
#include <vector>

#include "pipeline/core/type_module.h"
#include "pipeline/io/descriptor.h"
#include "stages/quantize/measurement.h"

namespace ggufmill {

// Each line is XXH3 of the rest with 64 bits in hexadecimal digits, a blank, and {ggufmill, tensor, matrices} in JSON,
// where numbers come back as they were. The seed of the hash is that of the kernel modules of foreign types, 0 without
// any. A line that is damaged, or that another version or other modules wrote, counts for nothing. Not thread-safe.
class MeasureJournal {
 public:
  // Takes what is at `path`, if anything is, and makes the file if not. Exit code 75 where another process measures
  // into it now, 4 for a file that is no such journal. An empty path: nothing is kept; likewise where the file is not
  // this user's alone (own_file.h), which warnings() says.
  static Result<MeasureJournal> open(const std::string& path, const std::vector<TypeModule>& modules);

  // Takes what another journal has, too, if it is this user's alone.
  Status read_also(const std::string& path);
  // The tensor of that identity with just these types; null where it is to be measured.
  const MeasuredTensor* find(const std::string& made_of, const std::vector<const TypeInfo*>& types) const;
  const std::vector<std::string>& warnings() const { return warnings_; }
  // They are on the disk when it returns.
  Status add(std::span<const MeasuredTensor> tensors);

 private:
  Status open_file();
  void take(std::string_view text);

  std::string path_;
  std::uint64_t seed_ = 0;
  std::vector<std::string> warnings_;
  Descriptor file_;
  std::uint64_t end_ = 0;                        // of the file
  std::map<std::string, MeasuredTensor> known_;  // by what they are made of
};

}  // namespace ggufmill
