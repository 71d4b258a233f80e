#pragma once
// Objectives that a choice of types minimizes: sums over tensors of sensitivity * squared relative error. Objectives
// are data, in configs/objectives/*.yaml; users can start from a copy of one.

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/config/fields.h"
#include "stages/quantize/measurement.h"

namespace ggufmill {

enum class ObjectiveKind { kStream, kRelative, kProbe, kAbsolute };

struct Objective {
  std::string name{};
  std::string description{}, formula{};
  ObjectiveKind kind = ObjectiveKind::kRelative;
  // For kStream only: roles of tensors, by parts of their names. Patterns of blocks match the name after "blk.N.".
  double head = 1;
  std::optional<Pattern> embedding{}, output{};
  struct Block {
    Pattern writes{}, others{};  // tensors that write to the residual stream; the other tensors of the block
  };
  std::vector<Block> blocks{};
  // Additional factor for the sensitivity; the first match counts.
  struct Multiplier {
    Pattern match{};
    double times = 1;
  };
  std::vector<Multiplier> multipliers{};
  std::string file{};  // path it was read from; empty: built in
};

// Returns a built-in objective by name, or reads one from a file by path. `asked` is the position for error messages.
Result<Objective> find_objective(const std::string& name_or_path, const Origin& asked);
FieldSpec objective_fields();  // fields of an objective file

// Divergence of the model with a single tensor quantized to `type`, by tensor name: the result of `probe`.
struct Probe {
  std::string type;
  double divergence = 0;
};
using Probes = std::map<std::string, Probe, std::less<>>;
// The file is a JSON object: {format: "ggufmill sensitivities", version: 1, measured_on, tensors: {NAME: {type,
// divergence}}}.
struct ProbeFile {
  std::string measured_on;  // hash of the source, the text and its used length; empty: unknown
  Probes probes;
};
// Reads such a file, or a table in the format of Thireus' suite (kld_results.csv), recognized by ".csv": a header line
// with QTYPE and the names of tensors, then a line for each type. Fails with exit code 4.
Result<ProbeFile> read_probes(const std::string& path, const Types& types = {});

// Use of experts in a model, which adds up their products with weights: each token uses `used` experts, with weights
// that sum to `scale`. `used` is 0 if unknown.
struct ExpertUse {
  std::uint64_t used = 0;
  double scale = 1;
};

// Returns the factor of each tensor's squared relative error, in the order of `tensors`. Returns an error that names
// the tensor if the objective does not apply (the tensor has no role, no importance or no probe). `probes` is used by
// kProbe only.
Result<std::vector<double>> sensitivities(const Objective& objective, const std::vector<const MeasuredTensor*>& tensors,
                                          const Measurement& all, const Probes& probes, const ExpertUse& experts = {});

// An objective embedded at build time.
struct BuiltInObjective {
  std::string_view name, text;
};
std::span<const BuiltInObjective> built_in_objectives();  // sorted by name

}  // namespace ggufmill
