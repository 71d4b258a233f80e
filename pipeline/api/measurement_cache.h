#pragma once
// The user's cache of measured tensors, shared by all pipeline files, by the library and by Python.

#include <map>
#include <span>
#include <string>
#include <vector>

#include "stages/quantize/measurement.h"

namespace ggufmill {

// Returns cache_folder("measurements").
std::string measurement_cache_folder();

// A folder with one file per tensor, named after a hash of its values and importance. Each line of a file is the
// measurement of one type: the 64-bit XXH3 of the rest in hexadecimal digits, a space, and the text of
// write_measured_line(). It contains no names, paths or addresses. Files are replaced atomically; if two processes
// replace the same one at once, one of them wins and the results of the other are measured again when they are needed.
// Lines that are damaged or were written by another version are ignored and dropped when the file is replaced. The
// folder may be removed at any time. Not thread-safe.
class MeasurementCache {
 public:
  // An empty path means that nothing is read or written.
  explicit MeasurementCache(std::string folder) : folder_(std::move(folder)) {}

  // Returns the line of the tensor with this MeasuredTensor::made_of; null if there is none.
  const MeasuredTensor* find(const std::string& tensor, const std::string& made_of);
  // Adds lines to a tensor's file, replacing those with the same `made_of`.
  void add(const std::string& tensor, std::span<const MeasuredTensor> measured);
  // Returns what could not be read or written, and why: one line for each kind of problem.
  std::vector<std::string> warnings() const;

 private:
  struct Lines {
    std::map<std::string, std::string> texts;  // by MeasuredTensor::made_of
    std::map<std::string, MeasuredTensor> measured;
  };
  Lines read(const std::string& tensor);
  Lines lines_of(std::string_view text, bool& is_damaged) const;
  Status write(const std::string& tensor, const std::string& text);
  std::string path_of(const std::string& tensor) const { return folder_ + "/" + tensor; }

  std::string folder_;
  std::map<std::string, Lines> known_;  // by tensor
  std::string unused_;                  // the first file that could not be used, and why
  std::size_t others_unused_ = 0;
  std::string unwritten_;
};

}  // namespace ggufmill
