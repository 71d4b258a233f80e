#pragma once
// The written form of a plan, and its identity.

#include <string>
#include <string_view>

#include "pipeline/plan/plan.h"

namespace ggufmill {

inline constexpr std::string_view kPlanFormat = "ggufmill plan";
inline constexpr int kPlanVersion = 1;

// JSON, one object: {format: "ggufmill plan", version: 1, ggufmill, sources: [{path, bytes, header_hash, modified}],
// source: {...}, expressions: [...], importances: [...], steps: [...], outputs: [...], manifest, nonfinite, report,
// modules: [{type, name, version, xxh3}], warnings, identity}. Expressions, importances and sources are numbered;
// 64-bit hashes are hexadecimal text; headers of output files are Base64. Limits are not in it: they are the machine's
// that runs it.
std::string write_plan(const Plan& plan);

// Reads that back to an equal plan, but for limits, which are the usual ones. Nothing in it is believed: expressions
// are made anew with their checks, places lie within their files, units are counted anew. Exit code 4 for what is
// wrong, and for a plan of another version. `name`: the file's, for messages.
// `types`: those that the plan can name.
Result<Plan> read_plan(std::string_view text, const std::string& name, const Types& types = {});

// 32 hexadecimal digits: a hash of everything that decides a byte of the outputs: sources (size, header hash, time; not
// their paths), expressions, types, the modules of foreign types (name, version, hash of the file), importance, places,
// headers, and the version of ggufmill. Not limits, reports, or which module makes a built-in type.
std::string identity_of(const Plan& plan);
// The same of one output, whatever others there are, and of what one encoding makes of one expression in a plan,
// wherever it goes; neither depends on what is taken from earlier outputs.
std::string identity_of(const Plan& plan, std::size_t output);
std::string identity_of(const Plan& plan, const Step& step, const Encoding& encoding);

}  // namespace ggufmill
