#pragma once
// The option `encoder`.

#include "pipeline/config/bound_fields.h"
#include "pipeline/core/encoder.h"

namespace ggufmill {

// Reads `reference`, `search`, the name of another encoder of `types`, `{reference: {lattice: auto}}`, or
// `{search: {effort: 2, weights: plain, lattice: off}}`.
Form<Encoder> encoder_form(const Types& types);

// Returns the type that the key of entry `i` of a dictionary names; the lint does not check such keys.
Result<const TypeInfo*> type_of_key(const Types& types, const ConfigNode& node, std::size_t i);

// Reads `{Q4_K: search, Q6_K: reference}`. Refuses encoders that their types do not have.
Form<EncodersByType> encoders_form(const Types& types);

// Refuses an encoder that `type` does not have. `origin` is where it was asked for.
Status check_encoder(const Encoder& encoder, const TypeInfo& type, const Origin& origin);

}  // namespace ggufmill
