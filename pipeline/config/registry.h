#pragma once
// Sources, stages and sinks that a pipeline file can name, each with its field table and the function that reads its
// options.

#include <functional>
#include <memory>
#include <vector>

#include "pipeline/config/bound_fields.h"
#include "pipeline/core/stage.h"

namespace ggufmill {

// The fit of a source for a path that is given alone, without naming a source.
enum class SourceFit {
  kNone,
  kOtherwise,  // the path does not contradict the format
  kName,       // the name, or that it is a folder
  kContents,   // what the folder contains
};

// `make` receives a value that has passed the lint of `field`. Its errors include the place in the file.
struct SourceSpec {
  FieldSpec field;  // its name is the key under `source:`
  std::function<Result<std::unique_ptr<Source>>(const ConfigNode& value)> make;
  // The source that fits best opens a path. Empty: kNone.
  std::function<SourceFit(const std::string& path)> fit{};
};

struct StageSpec {
  FieldSpec field;          // its name is the key of an item of `stages:`, or of an output (`quantize:`)
  bool per_output = false;  // allowed in an output, next to the sink's key
  std::function<Result<std::unique_ptr<Stage>>(const ConfigNode& value)> make;
};

struct SinkSpec {
  FieldSpec field;  // its name is the key of an output
  std::function<Result<std::unique_ptr<Sink>>(const ConfigNode& value)> make;
};

// Returns the specification of a source, stage or sink with bound options. `make` creates it from them, or fails.
template <class Part, class Options, class Make>
std::function<Result<std::unique_ptr<Part>>(const ConfigNode&)> part_maker(const Form<Options>& form, Make make) {
  return [read = form.read_into, make = std::move(make)](const ConfigNode& value) -> Result<std::unique_ptr<Part>> {
    Options options{};
    BOOST_OUTCOME_TRY(read(value, &options));
    return make(std::move(options));
  };
}

template <class Options, class Make>
SourceSpec source_spec(std::string name, Form<Options> form, Make make,
                       std::function<SourceFit(const std::string&)> fit = {}) {
  form.spec.name = std::move(name);
  return {form.spec, part_maker<Source>(form, std::move(make)), std::move(fit)};
}

// A stage for all outputs, or with `per_output` also for one of them.
template <class Options, class Make>
StageSpec stage_spec(std::string name, Form<Options> form, Make make, bool per_output = true) {
  form.spec.name = std::move(name);
  return {form.spec, per_output, part_maker<Stage>(form, std::move(make))};
}

template <class Options, class Make>
SinkSpec sink_spec(std::string name, Form<Options> form, Make make) {
  form.spec.name = std::move(name);
  return {form.spec, part_maker<Sink>(form, std::move(make))};
}

struct Registry {
  Types types;  // types that its parts and its files can name
  std::vector<SourceSpec> sources;
  std::vector<StageSpec> stages;
  std::vector<SinkSpec> sinks;
};

}  // namespace ggufmill
