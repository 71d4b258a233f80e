#pragma once
// Files that steps produce.

#include <functional>
#include <string>
#include <vector>

#include "pipeline/api/publish/step_results.h"
#include "pipeline/core/error.h"

namespace ggufmill {

// A file that a program writes. Until the program has succeeded, it is in a new folder next to `path` that only this
// user may enter and whose name nobody can guess: others who may write to the folder of `path` can neither plant a link
// that the program would follow nor replace what it writes. `path` is complete or missing, and a program that outlives
// a killed run writes no file of a later one. Movable.
class ProgramFile {
 public:
  // Creates the folder, and removes those that killed runs left for `path`. `ending` is that of the name of the file to
  // be written, such as ".gguf". Exit code 6.
  static Result<ProgramFile> create(std::string path, const std::string& ending);
  ProgramFile(ProgramFile&& other) noexcept;
  ProgramFile& operator=(ProgramFile&&) = delete;
  ~ProgramFile();  // removes the folder

  std::string path() const;  // to be written
  // Gives the file its name, in place of any other file of that name; nobody but this user may write to it.
  Status finish() const;

 private:
  ProgramFile(std::string path, std::string ending, std::string folder)
      : path_(std::move(path)), ending_(std::move(ending)), folder_(std::move(folder)) {}
  std::string path_, ending_, folder_;
};

// Returns a hash of a file's bytes. Fails with exit code 4 if it is missing, and 6 if it cannot be read.
Result<std::string> hash_of(const std::string& path);
// Returns true if both files can be read and are equal.
bool have_same_bytes(const std::string& a, const std::string& b);
// Returns true if a file exists and has this text.
bool is_text_at(const std::string& path, const std::string& text);

// Files that steps write next to the outputs. One that is as a step has left it may be replaced without being asked
// for; what has been written where is kept with the results of steps.
class StepFiles {
 public:
  // Fails with exit code 2 if `path` exists, was not written by a step or has been changed since, and `overwrite` is
  // not set.
  Status check(const std::string& path, bool overwrite) const;
  // Write a file that appears complete or not at all; nothing is done if it has the same bytes already. Fail like
  // check().
  Status copy(const std::string& from, const std::string& to, bool overwrite) const;
  Status write(const std::string& path, const std::string& text, bool overwrite) const;

 private:
  // Returns the hashes of the files that steps have written at a path, or were writing when they were killed.
  std::vector<std::string> written_to(const std::string& path) const;
  Status remember(const std::string& path, const std::vector<std::string>& hashes) const;
  // Calls `write`, which writes a file with this hash at `path`, between two records of it.
  Status replace(const std::string& path, const std::string& hash, bool overwrite,
                 const std::function<Status()>& write) const;
  StepResults results_;
};

}  // namespace ggufmill
