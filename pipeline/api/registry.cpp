#include "pipeline/api/registry.h"

#include "stages/arrays/arrays.h"
#include "stages/ggml/ggml.h"
#include "stages/gguf/gguf.h"
#include "stages/huggingface/adapter_source.h"
#include "stages/huggingface/huggingface_source.h"
#include "stages/huggingface/restored_checkpoint.h"
#include "stages/importance/importance_stage.h"
#include "stages/metadata/metadata_stage.h"
#include "stages/prune/prune_stage.h"
#include "stages/quantize/quantize_stage.h"
#include "stages/rename/rename_stage.h"
#include "stages/safetensors/safetensors.h"

namespace ggufmill {

Registry make_registry(const Types& types) {
  return {
      types,
      {gguf_source(types), safetensors_source(), huggingface_source(read_safetensors), adapter_source(read_safetensors),
       arrays_source(types), ggml_source()},
      {importance_stage(gguf_opener(types)), prune_stage(), rename_stage(), metadata_stage(), quantize_stage(types)},
      {gguf_sink(), safetensors_sink(huggingface::restore_checkpoint), npy_sink()}};
}

}  // namespace ggufmill
