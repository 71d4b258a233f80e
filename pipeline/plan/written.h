#pragma once
// The written (serialized) form of a plan, and its identity.

#include <string>
#include <string_view>

#include "pipeline/plan/plan.h"

namespace ggufmill {

inline constexpr std::string_view kPlanFormat = "ggufmill plan";
inline constexpr int kPlanVersion = 1;

// Returns the plan as a JSON object {format: "ggufmill plan", version: 1, ggufmill, sources: [{path, bytes,
// header_hash, modified}], source: {...}, expressions: [...], importances: [...], steps: [...], outputs: [...],
// manifest, nonfinite, report, file, other_inputs, trace, modules: [{type, name, version, xxh3}], warnings, identity}.
// Expressions, importances and sources are referred to by number; 64-bit hashes are hexadecimal text; headers of output
// files are Base64. Limits are not included: they belong to the machine that runs the plan.
std::string write_plan(const Plan& plan);

// Reads a written plan back into an equal plan, except for the limits, which are the defaults. The input is not
// trusted: expressions are rebuilt with all checks, places must be within their files, units are recomputed. Fails with
// exit code 4 for invalid input and for a plan of another version. `name` is the file's name for messages; `types` are
// the types that the plan can name.
Result<Plan> read_plan(std::string_view text, const std::string& name, const Types& types = {});

// Returns 32 hexadecimal digits: a hash of everything that affects a byte of the outputs: sources (size, header hash
// and time, but not paths), expressions, types, encoders, the modules of foreign types (name, version, hash of the
// file), importance, places, headers, and the version of ggufmill. Not included are limits, reports, and the modules
// used for built-in types.
std::string identity_of(const Plan& plan);
// The same for one output, regardless of other outputs, and for one encoding of one expression in a plan, wherever it
// is written. Neither depends on what is taken from earlier outputs.
std::string identity_of(const Plan& plan, std::size_t output);
std::string identity_of(const Plan& plan, const Step& step, const Encoding& encoding);

}  // namespace ggufmill
