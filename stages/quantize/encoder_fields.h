#pragma once
// The option `encoder`.

#include "pipeline/config/bound_fields.h"
#include "pipeline/core/encoder.h"

namespace ggufmill {

// Reads `reference`, `search`, `{reference: {gain: row}}`, or `{search: {effort: 3, weights: plain, gain: none}}`.
Form<Encoder> encoder_form();

// Refuses an encoder that `type` does not have. `origin` is where it was asked for.
Status check_encoder(const Encoder& encoder, const TypeInfo& type, const Origin& origin);

}  // namespace ggufmill
