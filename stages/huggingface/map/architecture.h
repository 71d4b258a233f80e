#pragma once
// The map of an architecture: describes, as data, how a checkpoint of that architecture is converted. The built-in
// files are configs/architectures/*.yaml; users add their own (added_maps.h).

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pipeline/config/bound_fields.h"
#include "pipeline/core/metadata.h"
#include "pipeline/core/pattern.h"
#include "pipeline/core/stage.h"
#include "pipeline/io/platform/filesystem.h"
#include "stages/huggingface/map/tensor_names.h"
#include "stages/huggingface/map/tensor_operations.h"
#include "stages/huggingface/map/values.h"
#include "stages/huggingface/tokenizer/tokenizer.h"

namespace ggufmill::huggingface {

class AddedMaps;
const AddedMaps& no_added_maps();
constexpr std::uint64_t kMaxMapBytes = 1 << 20;  // of a map file

// A folder of maps, or a map file, and the place that names it.
struct MapPlace {
  std::string path{};
  Origin origin{};
};

// One metadata entry. A key that already exists keeps its position.
struct MetadataRule {
  std::string key;  // full key
  MetadataType type = MetadataType::kUint32;
  ValueRule value;
  bool optional = false;   // if set, a missing value yields no entry instead of an error
  bool by_member = false;  // the value is an object, each of whose members is an entry: KEY.NAME
  bool infinite = false;   // numbers may be infinite
  std::optional<ValueRule> when;
};

// Renames or drops checkpoint tensors before the tensor rules see them.
struct NameRule {
  Pattern match;
  std::optional<std::string> with;  // new name; nullopt drops the tensor
  // If `with` is set, {layer} in it expands to the number in the first group (0 if there is none) plus `number`.
  // Otherwise, the rule drops only the names whose number is at least `number`, or with `below` less than `number`.
  std::optional<ValueRule> number;
  bool below = false;
  bool minus = false;  // with `with`: subtracts `number` instead; the rule applies only if the result is not negative
  std::optional<ValueRule> list;  // with `with`: {layer} is the element of this list at the number in the first group
  std::optional<ValueRule> when;
};

// An operation, or (`join`) several lists of steps that are applied to the same tensor and whose results are
// concatenated along the rows.
struct TensorStep {
  const TensorOperation* operation = nullptr;
  std::vector<ValueRule> arguments;
  std::vector<std::vector<TensorStep>> join;
  std::string place;
};

// Source of an output's values, if it is not simply the rule's one input tensor.
enum class Gather : std::uint8_t { kNone, kStack, kConcat, kRepack };

struct TensorOutput {
  NameTemplate name;  // GGUF name
  Gather gather = Gather::kNone;
  std::vector<NamePattern> parts;          // kStack: one, with {expert}; kConcat, kRepack: in order
  const RepackFunction* repack = nullptr;  // kRepack only
  std::optional<ValueRule> count;          // kStack: number of parts, or a list of it for each layer
  std::vector<TensorStep> part_steps;      // kStack, kConcat: applied to each part before they are joined
  std::vector<TensorStep> steps;
  std::optional<ValueRule> when;
};

// Applies to the checkpoint tensors that match `from`; the first matching rule wins.
struct CheckpointRule {
  std::vector<NamePattern> from;      // empty: each output lists its own parts, and all outputs are written together as
                                      // soon as the last part has been seen
  std::vector<TensorOutput> outputs;  // empty: the tensor is dropped
  bool early = false;                 // written before all other tensors
  bool by_layer = false;              // with `early`: in the order of rules and layers
  bool last = false;                  // written after all other tensors
  bool only_first = false;  // of the tensors that match, the checkpoint's first is used, and others are dropped
  bool zero = false;        // the tensor is dropped; any nonzero value is an error
  bool required = false;    // every layer must have such a tensor; a missing one is an error
  // A list with a flag for each layer: those with a true one must have such a tensor, the others must not. If the value
  // is missing, nothing is checked.
  std::optional<ValueRule> required_in;
  std::optional<ValueRule> when;
  std::string place;
};

// A tensor that is not in the checkpoint but computed from config.json. Computed tensors come first in the file.
struct ComputedRule {
  std::string name;
  const TensorFunction* function = nullptr;
  std::vector<ValueRule> arguments;
  std::optional<ValueRule> when;
  std::string place;
};

// Sets the type of the tensors whose GGUF name matches, regardless of the requested type.
struct TypeRule {
  Pattern match;
  const TypeInfo* type = nullptr;       // null: the requested type
  bool only_ternary = false;            // applies only if TQ1_0 or TQ2_0 was requested
  bool only_f16 = false;                // applies only if F16 was requested
  std::optional<ValueRule> from_layer;  // applies only from this layer on
  std::string stored;                   // applies only to tensors of this type in the checkpoint, "FP8" to those that
                                        // were decoded from 8-bit floats; empty: to all
  std::optional<ValueRule> when;
};

// Weights of 8-bit floats whose rows were distributed over ranks, see ShardedRows.
struct ShardRule {
  NamePattern from;
  std::vector<ValueRule> parts;  // rows of each part: a number, or a list of it for each layer
  ValueRule ranks;               // a list of possible numbers of ranks, in the order of preference
};

struct SpecialTokenData {
  SpecialTokenRule rule;
  std::optional<ValueRule> when;
};

struct TokenizerRules {
  struct Reader {
    TokenizerChoice choice;
    std::optional<ValueRule> when;
  };
  std::string folder;  // below the checkpoint's; empty: the same
  std::vector<Reader> readers;
  std::optional<ValueRule> vocabulary_size;
  std::optional<ValueRule> token_types;
  std::optional<ValueRule> space_prefix_of_config;
  std::vector<std::string> omitted_roles;
  std::vector<std::string> user_tokens;
  std::vector<std::string> control_tokens;
  std::vector<std::string> space_marks;
  std::vector<SpecialTokenData> special_tokens;
  std::string chat_template;              // used if the files have no template
  std::vector<std::string> second_roles;  // roles for a second pass over the special tokens; empty: no second pass
  std::vector<SpecialTokenData> second_tokens;
  std::optional<ValueRule> second_when;
};

// An alternative general.architecture, for checkpoints of the same class that differ in their config.json.
struct OtherName {
  std::string name;
  ValueRule when;
};

// Another map to use for checkpoints of the same class.
struct OtherMap {
  std::string map;
  ValueRule when;
};

// The tokenizer of a draft for another model, whose folder the source's option `target` names.
enum class TargetTokenizer {
  kNone,   // the map describes no such draft
  kFiles,  // the files in the target's folder, read by the draft's own rules
  kModel,  // that of the target's own map
};

// Tensors of the model that a draft is for.
struct TargetWeights {
  std::vector<std::string> names;  // in its checkpoint; the rules see them as target/NAME
  std::optional<ValueRule> when;   // they are read only if it is true
};

// A condition under which a checkpoint is refused although its class is supported.
struct Refusal {
  ValueRule when;
  std::string what;  // follows the path of the configuration in the message: "is a draft model, which ..."
  std::string help;
};

struct Architecture {
  std::string file;                    // file name without folder and extension, or the path
  std::string name;                    // general.architecture
  std::vector<OtherName> other_names;  // the first one whose condition is true replaces `name`
  std::vector<OtherMap> other_maps;    // the first one whose condition is true replaces the whole map
  TargetTokenizer target_tokenizer = TargetTokenizer::kNone;
  std::string description;
  std::vector<std::string> serves;        // classes in `architectures` of config.json
  std::vector<std::string> serves_whole;  // subset of `serves` that applies even if the text model names another class
  std::string config = "config.json";     // name of the file that describes the model
  std::optional<ValueRule> serves_when;   // for a file without `architectures`: condition that the map's models satisfy
  // Condition on the files of the folder alone; it sees the map's own `values` only. If it is true, the checkpoint has
  // the first class in `serves`, whichever class config.json names.
  std::optional<ValueRule> serves_folder_when;
  std::string weights;  // prefix of the weight files' names; empty: any name
  // Files in the folder or below it: the tensors of A.safetensors are named A/NAME, those of A/B.safetensors also.
  std::vector<std::string> further_weights;
  std::optional<TargetWeights> target_weights;
  std::vector<Refusal> refuses;
  std::vector<ShardRule> shards;
  ModelPart part = ModelPart::kText;
  bool partial = false;        // only for other maps to extend
  bool draft_head = false;     // has layers that predict further tokens; these can be skipped or written alone
  bool dspark = false;         // describes DSpark drafts that are stored in the checkpoint of their target
  bool dense_modules = false;  // the source's option of this name has an effect
  // The names of the LoRA adapters in a checkpoint. `adapters`: the map describes one of them; `adapter_names`: it
  // describes the model that they are for.
  std::optional<ValueRule> adapters, adapter_names;
  bool fused_experts = false;  // llama.cpp has a combined tensor for the experts' gate and up weights
  bool fused_qkv = false;      // llama.cpp has a combined tensor for queries, keys, and values, besides separate ones
  std::map<std::string, ValueRule> values;
  ValueRule layers;
  std::vector<MetadataRule> metadata_early;       // written right after general.architecture
  std::vector<MetadataRule> metadata_of_tensors;  // follows, but not if only the vocabulary is written
  std::vector<MetadataRule> metadata;             // written after general.*
  std::vector<MetadataRule> metadata_before_tokenizer;
  std::vector<MetadataRule> metadata_after_tokenizer;
  std::vector<NameRule> names;       // in order; every matching rule is applied
  std::vector<NameRule> names_back;  // the inverse of `names`: from the names that the rules see to the checkpoint's
  std::vector<CheckpointRule> tensors;
  std::vector<ComputedRule> computed;
  std::vector<TypeRule> types;  // the first match wins
  TokenizerRules tokenizer;
  PreTokenizers pre_tokenizers;
  std::map<std::string, ValueRule> memory;  // formulas over the metadata that is written, see run_memory.h
  // What llama.cpp uses for metadata entries that a GGUF file lacks, by key without the architecture.
  std::map<std::string, ValueRule> defaults;
  std::vector<std::string> files;  // files it was read from; empty for a built-in map
};

// The class of checkpoints whose config.json is written for a GGUF file.
struct CheckpointClass {
  std::string name;                 // in `architectures` of config.json
  std::string type;                 // its model_type
  NamedValues<ValueRule> config{};  // keys that no metadata rule reads, from the GGUF file's metadata
  std::optional<ValueRule> when{};
};

// A map that another one extends, by name or path.
struct MapParent {
  std::string name{};
  Origin origin{};
};

// The contents of a map file, without what it inherits. See Architecture for the meaning of its members.
struct MapFile {
  std::vector<MapParent> extends{};
  std::string name{}, description{};
  std::vector<OtherName> other_names{};
  std::vector<OtherMap> other_maps{};
  std::optional<TargetTokenizer> target_tokenizer{};
  std::optional<ModelPart> part{};
  bool partial = false;
  std::optional<bool> draft_head{}, dspark{}, dense_modules{}, fused_experts{}, fused_qkv{};
  std::vector<std::string> serves{}, serves_whole{}, further_weights{};
  std::optional<TargetWeights> target_weights{};
  std::optional<std::string> config{}, weights{};
  std::optional<ValueRule> serves_when{}, serves_folder_when{}, layers{}, adapters{}, adapter_names{};
  std::vector<Refusal> refuses{};
  std::vector<ShardRule> shards{};
  NamedValues<ValueRule> values{};
  std::vector<MetadataRule> metadata_early{}, metadata_of_tensors{}, metadata_first{}, metadata{};
  std::vector<MetadataRule> metadata_before_tokenizer{}, metadata_after_tokenizer{};
  std::vector<NameRule> names{}, names_back{};
  std::vector<CheckpointRule> tensors{};
  std::optional<std::vector<ComputedRule>> computed{};
  std::vector<TypeRule> types{};
  std::optional<TokenizerRules> tokenizer{};
  NamedValues<std::string> pre_tokenizers{};
  NamedValues<ValueRule> memory{};
  NamedValues<ValueRule> defaults{};
  std::vector<CheckpointClass> checkpoint{};  // not inherited
};
const Form<MapFile>& map_form();
// Forms of its parts.
Form<ValueRule> value_form();
Form<std::vector<CheckpointRule>> tensor_rules_form();
Form<std::vector<ComputedRule>> computed_rules_form();
Form<std::vector<ShardRule>> shard_rules_form();
// A condition, which every rule can have.
template <class Options>
Field<Options> when_field(std::optional<ValueRule> Options::*member) {
  return field("when", member, value_form(), "Condition that must be true.");
}
FieldSpec architecture_fields();

// Reads the map with the given name, added or built-in, or the map file at the given path, with everything it extends.
// An added map that extends its own name extends the built-in map that it replaces; built-in maps extend only built-in
// ones. Exit code 2.
Result<Architecture> read_architecture(const std::string& name_or_path, const Origin& asked = {},
                                       const AddedMaps& added = no_added_maps());
// Returns the part whose map describes `part`: the map of a text model also describes its draft.
ModelPart described_part(ModelPart part);
// Finds the map that serves a class of config.json: an added one, or else a built-in one. Exit code 4: the error
// reports whether convert_hf_to_gguf.py converts the class, or which classes of its family are served; `where` is for
// the message. Exit code 2 if two added maps of one place serve the class.
Result<Architecture> find_architecture(const std::string& checkpoint_class, const std::string& where,
                                       ModelPart part = ModelPart::kText, const AddedMaps& added = no_added_maps());
// Returns the name of the built-in map that serves a class; empty if none does. Exit code 2.
Result<std::string> built_in_map_for(const std::string& checkpoint_class, ModelPart part);

// Returns the class in config.json that decides how to convert the checkpoint: the text model's, unless a map claims
// the class of the whole model. Returns an empty string if config.json names no class. Exit code 2.
Result<std::string> class_to_convert(const boost::json::object& config, const AddedMaps& added = no_added_maps());

// A checkpoint that is recognized by the files in its folder.
struct MarkedFolder {
  std::string checkpoint_class;
  std::string config;  // name of the file that describes the model
};
// Finds the map whose `serves_folder_when` is true for the folder, an added one or else a built-in one; nullopt if
// there is none. `config`: only maps that read this file; empty: any. Exit code 4: the files are those of a class that
// no map serves.
Result<std::optional<MarkedFolder>> marked_folder(const fs::path& folder, const AddedMaps& added = no_added_maps(),
                                                  std::string_view config = {});

// Returns the class in config.json that decides how to convert the projector: the vision model's, or that of the whole
// model. Returns an empty string if config.json names no class.
std::string projector_class(const boost::json::object& config);

// Finds the map for a configuration without a class, read from the file `name` in `folder`: an added one, or else a
// built-in one. Exit code 4.
Result<Architecture> find_architecture_without_class(const fs::path& folder, const std::string& name,
                                                     const boost::json::object& config,
                                                     const AddedMaps& added = no_added_maps());

// Reads the map that the user requested by name or path; partial maps are an error. Exit code 2.
Result<Architecture> named_architecture(const std::string& name_or_path, const Origin& asked,
                                        const AddedMaps& added = no_added_maps());

// A file that is embedded at build time.
struct BuiltInArchitecture {
  std::string_view name;
  std::string_view text;
};
std::span<const BuiltInArchitecture> built_in_architectures();     // sorted by name; includes partial maps
const BuiltInArchitecture* built_in_named(std::string_view name);  // null if there is none
// Returns the contents of a built-in map file, without what it inherits. It is parsed only once: parsing takes longer
// than converting a small model. Thread-safe.
Result<const MapFile*> built_in_file(const BuiltInArchitecture& built_in);
std::string_view unserved_class_table();  // configs/unserved_classes.tsv: see tokenizer/tables.h

}  // namespace ggufmill::huggingface
