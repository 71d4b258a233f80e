#pragma once
// Random stages, with what they have to do.

#include "tests/random/random_job.h"

namespace ggufmill::testing {

// Each returns one stage; `layers` is the number of layers that a model has before the stage.
RandomStage random_prune(Random& random, unsigned& layers);
RandomStage rename_stage(const std::string& from, const std::string& to);
RandomStage random_metadata(Random& random);
RandomStage random_lora(Random& random, const RandomSource& source);
RandomStage importance_stage(const RandomSource& source);
RandomStage random_quantize(Random& random);
RandomStage random_float_type(Random& random);  // `quantize` with a type that is not quantized
// `quantize` with a target, which only outputs can have.
RandomStage random_target(Random& random);

}  // namespace ggufmill::testing
