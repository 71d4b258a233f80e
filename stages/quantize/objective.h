#pragma once
// What a choice of types is to make small: sums over tensors of sensitivity * squared relative error. Which there are
// is data, configs/objectives/*.yaml; a copy of one is where a user starts.

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
  std::string name;
  std::string description, formula;
  ObjectiveKind kind = ObjectiveKind::kRelative;
  // Of kStream: which tensors are what, by parts of their names. Those of blocks stand behind "blk.N.".
  double head = 1;
  std::optional<Pattern> embedding, output;
  struct Block {
    Pattern writes, others;  // those that write to the residual stream, and the others of such a part of a layer
  };
  std::vector<Block> blocks;
  // What sensitivities are multiplied by besides; the first that matches.
  struct Multiplier {
    Pattern match;
    double times = 1;
  };
  std::vector<Multiplier> multipliers;
  std::string file;  // that it was read from; empty: built in
};

// A built-in objective by name, or a file by its path. `asked`: for messages.
Result<Objective> find_objective(const std::string& name_or_path, const Origin& asked);
FieldSpec objective_fields();  // of such a file

// Divergence with one tensor alone of a type, by the tensor's name: what `probe` measures.
struct Probe {
  std::string type;
  double divergence = 0;
};
using Probes = std::map<std::string, Probe, std::less<>>;
// {format: "ggufmill sensitivities", version: 1, measured_on, tensors: {NAME: {type, divergence}}}.
struct ProbeFile {
  std::string measured_on;  // a hash of the source, the text and how much of it; empty where it is not told
  Probes probes;
};
// Such a file, or a table as the suite of Thireus publishes it (kld_results.csv), told by ".csv": QTYPE and the names
// of tensors, then a line for each type. Exit code 4.
Result<ProbeFile> read_probes(const std::string& path, const Types& types = {});

// How a model uses its experts, whose products it adds up with weights: for each token `used` of them, with weights
// whose sum is `scale`. 0: it is not known.
struct ExpertUse {
  std::uint64_t used = 0;
  double scale = 1;
};

// What each tensor's squared relative error counts, in the order of `tensors`; or, where the objective cannot say
// (tensors without a role, no importance, no probe), an error that names the tensor. `probes`: of kProbe.
Result<std::vector<double>> sensitivities(const Objective& objective, const std::vector<const MeasuredTensor*>& tensors,
                                          const Measurement& all, const Probes& probes, const ExpertUse& experts = {});

// An objective embedded at build time.
struct BuiltInObjective {
  std::string_view name, text;
};
std::span<const BuiltInObjective> built_in_objectives();  // sorted by name

}  // namespace ggufmill
