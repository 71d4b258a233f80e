#pragma once
// The source `huggingface`.

#include <memory>
#include <string>
#include <vector>

#include "pipeline/config/registry.h"
#include "stages/huggingface/conversion.h"

namespace ggufmill {

namespace huggingface {
// The values of SourceOptions::class_defaults, which has no effect.
Form<bool> class_defaults_form();
// The values of SourceOptions::architectures.
Form<std::vector<MapPlace>> map_places_form();
inline constexpr const char* kArchitecturesDoc =
    "Folder of architecture maps, or one map file, or a list of them, to add to the built-in ones. They take "
    "precedence over built-in maps of the same name and for the classes that they serve.";
}  // namespace huggingface

// `open` reads the headers of the weights.
std::unique_ptr<Source> make_huggingface_source(huggingface::SourceOptions options, CheckpointOpener open);
// Returns the spec of `huggingface: FOLDER`, or `huggingface: {path: FOLDER, outtype: q8_0, ...}`. `maps`: folders and
// files of architecture maps that take precedence over those that the source names.
SourceSpec huggingface_source(CheckpointOpener open, std::vector<std::string> maps = {});

}  // namespace ggufmill
