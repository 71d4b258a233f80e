#pragma once
// The paths of a pipeline file as others may see them.

#include <map>
#include <set>
#include <string>

#include "pipeline/core/error.h"

namespace ggufmill {

struct Registry;

// Names for the paths of a job, without folders of this machine: a path that is absolute, in a home folder, or not
// below the current folder keeps its last component, or as many as tell it from the others. Addresses are pinned to the
// commit that they refer to. What decides no byte of the outputs, such as the commands of steps with their arguments,
// is omitted. Immutable.
class PathNames {
 public:
  // `text` is that of the job, see Job::text, and `inputs` are the paths of all files that it reads. Fails if an
  // address cannot be pinned.
  static Result<PathNames> of(const std::string& text, const std::string& file, const Registry& registry,
                              const std::set<std::string>& inputs);

  // Returns the text with these names.
  const std::string& text() const { return text_; }
  // Returns the name of a file that the job has read: of a path of the text, in a folder that is one, next to a file
  // that is one, or any other.
  std::string name_of(const std::string& path) const;

 private:
  std::string text_;
  std::map<std::string, std::string> names_;  // of the paths that are read
};

}  // namespace ggufmill
