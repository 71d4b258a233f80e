#pragma once
// Configuration files written from their trees.

#include <functional>
#include <string>

#include "pipeline/config/config_node.h"
#include "pipeline/config/registry.h"

namespace ggufmill {

enum class YamlLayout {
  kLines,    // each value in a line of its own, so that a message can show the affected one
  kOneLine,  // for an argument
};

// Returns a tree as YAML in brackets. Parameters (`${NAME}`) stay.
std::string yaml_of(const ConfigNode& node, YamlLayout layout);

// Returns a pipeline file whose parameters have been replaced, without their declarations, in lines. It has the same
// values, also where a value is what it looks like, as a number is.
std::string resolved_yaml_of(const ConfigNode& root);

// What a pipeline file does with a path.
enum class PathUse {
  kRead,     // and those of programs, and of files that sections other than `outputs` write
  kWritten,  // the target of an output, wherever it stands
};
using ReplacePath = std::function<std::string(const std::string& path, PathUse use)>;
// Returns a resolved pipeline file with other paths. `name` is for messages. Values that can be a name or a file, such
// as recipes, are paths if `is_file` returns true for them; none are if it is empty. Exit code 2 if the text is not a
// valid pipeline file.
Result<std::string> with_other_paths(const std::string& text, const std::string& name, const Registry& registry,
                                     const ReplacePath& replace,
                                     const std::function<bool(const std::string& value)>& is_file = {});

// Returns a resolved pipeline file without the options that decides_bytes() is false for, and without arguments of
// programs: what is left are the sources, stages and outputs. Exit code 2 if the text is not a pipeline file.
Result<std::string> deciding_part_of(const std::string& text, const std::string& name, const Registry& registry);

}  // namespace ggufmill
