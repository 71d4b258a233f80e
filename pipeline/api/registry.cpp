#include "pipeline/api/registry.h"

#include "pipeline/io/source_path.h"

#include "stages/arrays/arrays.h"
#include "stages/diffusion/diffusion_source.h"
#include "stages/ggml/ggml.h"
#include "stages/gguf/gguf.h"
#include "stages/huggingface/adapter_source.h"
#include "stages/huggingface/huggingface_source.h"
#include "stages/huggingface/map/restored_checkpoint.h"
#include "stages/importance/importance_stage.h"
#include "stages/lora/lora_stage.h"
#include "stages/metadata/metadata_stage.h"
#include "stages/prune/prune_stage.h"
#include "stages/quantize/quantize_stage.h"
#include "stages/rename/rename_stage.h"
#include "stages/safetensors/safetensors.h"

namespace ggufmill {
namespace {

// Returns a function that opens adapters: folders in the format of PEFT, and GGUF files.
AdapterOpener adapter_opener(const Types& types, const std::vector<std::string>& maps) {
  return [types, maps](const std::string& path, const AdapterBase& base) -> Result<Model> {
    if (!is_folder(path) && !is_address(path)) return read_gguf(path, types);
    if (base.folder.empty())
      return input_error(path, "is a PEFT adapter, and the source is not a checkpoint with a config.json",
                         "add `base: FOLDER`, with the config.json of the base model, or convert the adapter with "
                         "`ggufmill convert-lora` and merge the result");
    huggingface::AdapterOptions options;
    options.adapter = path;
    options.base = base.folder;
    options.architecture = base.architecture;
    options.architectures = huggingface::map_places(maps);
    for (huggingface::MapPlace& place : huggingface::map_places(base.maps))
      options.architectures.push_back(std::move(place));
    options.use = huggingface::PairUse::kMerged;
    BOOST_OUTCOME_TRY(huggingface::ConvertedCheckpoint converted, read_huggingface_adapter(options, read_safetensors));
    return std::move(converted.model);
  };
}

// Returns the function that restores checkpoints, also by maps that are added to the built-in ones.
CheckpointRestorer checkpoint_restorer(const std::vector<std::string>& maps) {
  return [maps](Model model, const CheckpointOrigin& origin) {
    CheckpointOrigin with_maps = origin;
    with_maps.maps.insert(with_maps.maps.begin(), maps.begin(), maps.end());
    return huggingface::restore_checkpoint(std::move(model), with_maps);
  };
}

}  // namespace

Registry make_registry(const Types& types, const std::vector<std::string>& maps) {
  return {
      types,
      {gguf_source(types), safetensors_source(), huggingface_source(read_safetensors, maps),
       diffusion_source(read_safetensors), adapter_source(read_safetensors, maps), arrays_source(types), ggml_source()},
      {importance_stage(gguf_opener(types)), prune_stage(), rename_stage(), lora_stage(adapter_opener(types, maps)),
       metadata_stage(), quantize_stage(types)},
      {gguf_sink(), safetensors_sink(checkpoint_restorer(maps)), npy_sink()}};
}

}  // namespace ggufmill
