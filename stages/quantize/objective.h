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
    // The norm of what they write, and tensors of which a layer has one if that norm exists; nullopt: any.
    std::optional<Pattern> norm{}, norm_with{};
  };
  std::vector<Block> blocks{};
  std::vector<Pattern> parts{};  // of a block; their results are added. Other tensors are one more part
  std::optional<Pattern> scaled_by_width{}, scaled_blocks{};  // architectures
  double least_use = 0.1;                                     // of an expert, as a share of the mean of its tensor
  // Tensors of layers that have no importance, or more than a share of whose experts saw fewer tokens, get no type of
  // fewer bits.
  struct Caution {
    const TypeInfo* at_least = nullptr;
    double tokens = 0;
    double experts = 0;
  };
  std::optional<Caution> cautious{};
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
  std::size_t line = 0;  // of the table, from 1; 0: not from a table
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

// Facts about a model that `stream` uses besides its measurement.
struct StreamFacts {
  // Each token uses `experts_used` experts (0: unknown), and their results are added with weights that sum to
  // `expert_scale`.
  std::uint64_t experts_used = 0;
  double expert_scale = 1;
  double embedding_scale = 1, block_scale = 1;  // factors of what the embedding and blocks write
  bool has_output = false;                      // false: the embedding is also the head, unless a head was measured
  // The layers from this one on predict further tokens: they have no importance, and count nothing.
  std::uint64_t first_extra_layer = UINT64_MAX;
  // The energy of what a norm lets a block write, before that factor, by layer and index of the block.
  std::map<std::pair<std::uint64_t, std::size_t>, double> norms{};
};

struct Sensitivities {
  std::vector<double> counts;  // the factor of each tensor's squared relative error
  // Names of tensors that write to the residual stream and have no importance: their energy is estimated, by the
  // importance of such tensors of the nearest layers.
  std::vector<std::string> estimated;
};
// Returns the sensitivities in the order of `tensors`. Returns an error that names the tensor if the objective does not
// apply (the tensor has no role, no importance or no probe). `probes` is used by kProbe only.
Result<Sensitivities> sensitivities(const Objective& objective, const std::vector<const MeasuredTensor*>& tensors,
                                    const Measurement& all, const Probes& probes, const StreamFacts& facts = {});

// An objective embedded at build time.
struct BuiltInObjective {
  std::string_view name, text;
};
std::span<const BuiltInObjective> built_in_objectives();  // sorted by name

}  // namespace ggufmill
