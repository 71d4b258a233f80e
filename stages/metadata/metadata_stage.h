#pragma once
// The stage `metadata`: sets and removes keys.

#include "pipeline/core/stage.h"

namespace ggufmill {

StageSpec metadata_stage();

}  // namespace ggufmill
