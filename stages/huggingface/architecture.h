#pragma once
// The map of an architecture: what a checkpoint of it becomes, as data. The files are configs/architectures/*.yaml; a
// copy of one is where a user starts.

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pipeline/config/fields.h"
#include "pipeline/core/metadata.h"
#include "pipeline/core/pattern.h"
#include "stages/huggingface/tensor_names.h"
#include "stages/huggingface/tensor_operations.h"
#include "stages/huggingface/tokenizer.h"
#include "stages/huggingface/values.h"

namespace ggufmill::huggingface {

// One entry of the metadata. A key that is there already keeps its place.
struct MetadataRule {
  std::string key;  // whole
  MetadataType type = MetadataType::kUint32;
  ValueRule value;
  bool optional = false;  // no value: no entry; else that is an error
  std::optional<ValueRule> when;
};

// Checkpoint names are changed, or left out, before the rules for tensors see them.
struct NameRule {
  Pattern match;
  std::optional<std::string> with;  // none: the tensor is left out
  // With `with`: {layer} in it stands for the number in the first group, or 0, and so many more. Without: only names
  // whose number is at least that are left out, or (`below`) less than that.
  std::optional<ValueRule> number;
  bool below = false;
  bool minus = false;  // with `with`: so many less, and only where there are as many
  std::optional<ValueRule> when;
};

// An operation, or (`join`) the tensors that several lists of steps make of the one, as one along its rows.
struct TensorStep {
  const TensorOperation* operation = nullptr;
  std::vector<ValueRule> arguments;
  std::vector<std::vector<TensorStep>> join;
  std::string place;
};

// Where the values of an output come from, where not from the one tensor of the rule.
enum class Gather : std::uint8_t { kNone, kStack, kConcat, kRepack };

struct TensorOutput {
  NameTemplate name;  // in GGUF
  Gather gather = Gather::kNone;
  std::vector<NamePattern> parts;          // kStack: one, with {expert}; kConcat and kRepack: in order
  const RepackFunction* repack = nullptr;  // kRepack
  std::optional<ValueRule> count;          // kStack: how many
  std::vector<TensorStep> steps;
  std::optional<ValueRule> when;
};

// The first rule that fits a checkpoint tensor's name is used.
struct TensorRule {
  std::vector<NamePattern> from;      // empty: every output says where it comes from, and all are written together,
                                      // once the last part of them has been met
  std::vector<TensorOutput> outputs;  // none: the tensor is left out
  bool early = false;                 // written before all others
  bool zero = false;                  // left out, but a value that is not 0 is an error
  bool required = false;              // a checkpoint without such a tensor, in any layer that there is, is an error
  std::optional<ValueRule> when;
  std::string place;
};

// A tensor that no checkpoint has, computed from config.json. First in the file.
struct ComputedRule {
  std::string name;
  const TensorFunction* function = nullptr;
  std::vector<ValueRule> arguments;
  std::optional<ValueRule> when;
  std::string place;
};

// The type of the tensors whose GGUF name fits, whatever type was asked for.
struct TypeRule {
  Pattern match;
  const TypeInfo* type = nullptr;       // null: the one that was asked for
  bool only_ternary = false;            // only where TQ1_0 or TQ2_0 was asked for
  std::optional<ValueRule> from_layer;  // only in layers from this one on
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
  std::vector<Reader> readers;
  std::optional<ValueRule> vocabulary_size;
  std::optional<ValueRule> token_types;
  std::string pre;
  std::optional<ValueRule> space_prefix_of_config;
  std::vector<std::string> user_tokens;
  std::vector<std::string> control_tokens;
  std::vector<SpecialTokenData> special_tokens;
  std::string chat_template;              // where the files have none
  std::vector<std::string> second_roles;  // of a second pass over the special tokens; empty: there is none
  std::vector<SpecialTokenData> second_tokens;
  std::optional<ValueRule> second_when;
};

// Another general.architecture, of checkpoints of the same class that differ in what config.json says.
struct OtherName {
  std::string name;
  ValueRule when;
};

// A checkpoint that its class alone does not give away as one that cannot be converted.
struct Refusal {
  ValueRule when;
  std::string what;  // follows the path of the configuration: "is a draft model, which ..."
  std::string help;
};

struct Architecture {
  std::string file;                    // its name without folder and ending, or its path
  std::string name;                    // general.architecture
  std::vector<OtherName> other_names;  // the first that holds takes the place of `name`
  std::string description;
  std::vector<std::string> serves;           // `architectures` of config.json
  std::vector<std::string> serves_whole;     // of these those that count although the text model names another class
  std::string config = "config.json";        // the file that says what a model is
  std::optional<ValueRule> serves_when;      // for a file without `architectures`: what holds for its models
  std::string weights;                       // what the names of the weights' files begin with; empty: anything
  std::vector<std::string> further_weights;  // files below the folder, whose tensors are named FOLDER/NAME
  std::vector<Refusal> refuses;
  bool partial = false;        // there for others to extend
  bool draft_head = false;     // has layers that predict further tokens, to leave out or to write alone
  bool fused_experts = false;  // llama.cpp has a tensor for their gates and ups together
  std::map<std::string, ValueRule> values;
  ValueRule layers;
  std::vector<MetadataRule> metadata_of_tensors;  // right after general.architecture
  std::vector<MetadataRule> metadata;             // after general.*
  std::vector<MetadataRule> metadata_before_tokenizer;
  std::vector<MetadataRule> metadata_after_tokenizer;
  std::vector<NameRule> names;       // in order; all that fit
  std::vector<NameRule> names_back;  // likewise, from the names that the rules see to the checkpoint's
  std::vector<TensorRule> tensors;
  std::vector<ComputedRule> computed;
  std::vector<TypeRule> types;  // first match
  TokenizerRules tokenizer;
  std::vector<std::string> files;  // that it was read from; none of a built-in one
};

// The field table of such a file.
FieldSpec architecture_fields();
// Adds what a file that has passed the lint says to `into`, which holds what it extends. Exit code 2, with the place.
Status read_into(const ConfigNode& root, Architecture& into);

// The built-in map of that name, or that of a file by its path, with all that it extends. Exit code 2.
Result<Architecture> read_architecture(const std::string& name_or_path, const Origin& asked = {});
// The built-in map that serves a class of config.json. Exit code 4: the error reports whether convert_hf_to_gguf.py
// converts the class, or which of its family are served; `where` is for the message.
Result<Architecture> find_architecture(const std::string& checkpoint_class, const std::string& where);

// The class of a config.json that counts: the text model's, unless a built-in map serves that of the whole model all
// the same. Empty where there is none. Exit code 2.
Result<std::string> class_to_convert(const boost::json::object& config);

// The built-in map for a configuration that is in a file of that name in `folder` and says no class. Exit code 4.
Result<Architecture> find_architecture_without_class(const std::filesystem::path& folder, const std::string& name,
                                                     const boost::json::object& config);

// The map that is asked for by a name or a path. Exit code 2.
Result<Architecture> named_architecture(const std::string& name_or_path, const Origin& asked);

// A file embedded at build time.
struct BuiltInArchitecture {
  std::string_view name;
  std::string_view text;
};
std::span<const BuiltInArchitecture> built_in_architectures();  // sorted by name; those that others extend included

}  // namespace ggufmill::huggingface
