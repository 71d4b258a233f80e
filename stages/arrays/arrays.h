#pragma once
// Loose arrays as a model, and a model as loose arrays, for programs that read or write individual tensors.

#include <memory>
#include <string>

#include "pipeline/config/registry.h"
#include "pipeline/core/stage.h"

namespace ggufmill {

// Returns a source for a model described in a YAML file: metadata, and tensors in .npy and raw files (paths relative to
// the YAML file), in output order. Does not read weights. Fails with exit code 2 for errors in the YAML file, 4 for
// errors in the files it names.
std::unique_ptr<Source> make_arrays_source(std::string path, Types types = {});
// Returns the fields of the YAML file.
FieldSpec arrays_fields();
// Returns the specification of `arrays: FILE.yaml`.
SourceSpec arrays_source(Types types = {});

namespace arrays {
struct SinkOptions {
  std::string folder{};  // {recipe} is replaced by the recipe's name
  Origin origin{};
};
}  // namespace arrays

// Returns a sink that writes every tensor to FOLDER/NAME.npy, with `/` in a name replaced by `_`. Types that NumPy does
// not support become F32. Fails with exit code 2 for names that are not valid file names or that map to the same file.
std::unique_ptr<Sink> make_npy_sink(arrays::SinkOptions options);
// Returns the specification of `npy: FOLDER`.
SinkSpec npy_sink();

}  // namespace ggufmill
