#include "pipeline/api/registry.h"

#include "pipeline/config/yaml_reader.h"
#include "stages/gguf/gguf.h"
#include "stages/importance/importance_stage.h"
#include "stages/metadata/metadata_stage.h"
#include "stages/prune/prune_stage.h"
#include "stages/quantize/quantize_stage.h"
#include "stages/rename/rename_stage.h"

namespace ggufmill {

const Registry& registry() {
  static const Registry all{
      {gguf_source()},
      {importance_stage(read_gguf), prune_stage(), rename_stage(), metadata_stage(), quantize_stage(read_document)},
      {gguf_sink()}};
  return all;
}

}  // namespace ggufmill
