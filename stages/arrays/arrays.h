#pragma once
// Loose arrays as a model, and a model as loose arrays: what a program does that reads or writes tensors one by one.

#include <memory>
#include <string>

#include "pipeline/config/registry.h"
#include "pipeline/core/stage.h"

namespace ggufmill {

// A model as a YAML file describes it: metadata, and tensors in .npy and raw files beside it, in the order written.
// Weights are not touched. Exit code 2 for what is wrong in the YAML file, 4 in what it names.
std::unique_ptr<Source> make_arrays_source(std::string path, Types types = {});
// What the YAML file may hold.
FieldSpec arrays_fields();
// `arrays: FILE.yaml`.
SourceSpec arrays_source(Types types = {});

namespace arrays {
struct SinkOptions {
  std::string folder{};  // {recipe} in it stands for the recipe's name
  Origin origin{};
};
}  // namespace arrays

// Writes every tensor as FOLDER/NAME.npy, `/` in a name as `_`. Types that NumPy does not have become F32. Exit code 2
// for names that are no file names, or that would be one file.
std::unique_ptr<Sink> make_npy_sink(arrays::SinkOptions options);
// `npy: FOLDER`.
SinkSpec npy_sink();

}  // namespace ggufmill
