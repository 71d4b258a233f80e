#pragma once
// The map by which a checkpoint is converted, chosen by its config.json and the source's options, and the facts that
// the map's rules see before a tensor is read.

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/io/platform/filesystem.h"
#include "stages/huggingface/checkpoint/checkpoint_files.h"
#include "stages/huggingface/checkpoint/named_tensor.h"
#include "stages/huggingface/conversion.h"
#include "stages/huggingface/map/added_maps.h"
#include "stages/huggingface/map/architecture.h"
#include "stages/huggingface/map/values.h"
#include "stages/huggingface/sentence_modules.h"

namespace ggufmill::huggingface {

// The tensors of a checkpoint under their own names, without what trainers added.
struct OpenedTensors {
  std::vector<NamedTensor> own;
  std::vector<NamedTensor> further;  // of the map's further weights, named FOLDER/NAME
  std::vector<SourceRef> files;
  std::vector<std::string> notes;  // on what was removed from names
};

// Not movable: the facts refer to the values of the maps.
class ChosenMap {
 public:
  explicit ChosenMap(SourceOptions from) : options(std::move(from)) {}
  ChosenMap(const ChosenMap&) = delete;
  ChosenMap& operator=(const ChosenMap&) = delete;

  // Reads the configuration of the checkpoint and, for a draft, of its target; sets all members. Checks that the
  // options fit the map.
  Status choose(std::vector<std::string>& warnings);

  // Reads which modules of sentence-transformers follow the transformer, see sentence_modules.h.
  Status read_modules(std::vector<std::string>& warnings);
  // Opens the tensors, and sets them in the facts.
  Result<OpenedTensors> open_tensors(CheckpointFiles& files);
  // Sets the facts that follow from the tokenizer, which must outlive this.
  void set_tokenizer(const TokenizerMetadata& tokenizer);

  fs::path file(std::string_view name) const { return fs::path(options.folder) / name; }
  fs::path config_file() const { return file(architecture.config); }
  // The map and the facts for the tokenizer: those of the target for a draft that uses the target's map.
  const Architecture& tokenizer_map() const {
    return architecture.target_tokenizer == TargetTokenizer::kModel ? target_map : architecture;
  }
  // The pre-tokenizers that the tokenizer's map and the added tables name, by hash.
  PreTokenizers pre_tokenizers() const;
  const AddedMaps& added_maps() const GGUFMILL_OUTLIVES_RESULT { return added_; }
  Facts& tokenizer_facts() { return target_facts ? *target_facts : *facts; }
  // The folder of the tokenizer's files, which can lie below that of the checkpoint.
  fs::path tokenizer_folder();

  SourceOptions options;              // the folder is a local one
  std::string config_path;            // of the file that was read
  boost::json::object stored_config;  // as in the file
  std::string class_name;             // that decided how to convert the checkpoint; may be empty
  std::string folder_class;           // the class that the files in the folder mark; empty: that in config.json counts
  Architecture architecture;
  std::optional<Facts> facts;  // has a value once the map is chosen

 private:
  Status read_config();
  Status refuse_adapter() const;
  Error no_config(const std::string& name) const;
  Result<Architecture> architecture_of_config() const;
  Status choose_other_map(const boost::json::object& config);
  Status choose_adapter(boost::json::object option);
  Status check_part() const;
  Status read_preprocessor();
  Status read_target();
  Status add_target_tensors(CheckpointFiles& files, OpenedTensors& opened) const;
  Status check_options() const;
  Status check_refusals() const;
  Status note_replaced(std::vector<std::string>& warnings) const;

  AddedMaps added_;
  std::string target_folder;  // of the model that a draft is for; empty: none
  Architecture target_map;
  std::optional<Facts> target_facts;
  std::map<std::string, ValueRule> no_values;
  std::vector<DenseModule> dense_modules_;
};

// Returns the names in quotes, for messages.
std::vector<std::string> quoted_names(const boost::json::array& names);

}  // namespace ggufmill::huggingface
