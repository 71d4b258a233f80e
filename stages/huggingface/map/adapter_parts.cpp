#include "stages/huggingface/map/adapter_parts.h"

namespace ggufmill::huggingface {
namespace {

constexpr AdapterPart kAdapterParts[] = {
    {"lora_", Added::kAdapter, "a LoRA adapter"},
    {"ia3_", Added::kAdapter, "an IA3 adapter"},
    {"oft_", Added::kAdapter, "an OFT adapter"},
    {"boft_", Added::kAdapter, "a BOFT adapter"},
    {"lokr_", Added::kAdapter, "a LoKr adapter"},
    {"hada_", Added::kAdapter, "a LoHa adapter"},
    {"hra_u", Added::kAdapter, "an HRA adapter"},
    {"vera_", Added::kAdapter, "a VeRA adapter"},
    {"pvera_", Added::kAdapter, "a PVeRA adapter"},
    {"vblora_", Added::kAdapter, "a VB-LoRA adapter"},
    {"randlora_", Added::kAdapter, "a RandLoRA adapter"},
    {"gralora_", Added::kAdapter, "a GraLoRA adapter"},
    {"tinylora_", Added::kAdapter, "a TinyLoRA adapter"},
    {"unilora_", Added::kAdapter, "a UniLoRA adapter"},
    {"delora_", Added::kAdapter, "a DeLoRA adapter"},
    {"hira_", Added::kAdapter, "a HiRA adapter"},
    {"poly_lora_A", Added::kAdapter, "a Poly adapter"},
    {"poly_lora_B", Added::kAdapter, "a Poly adapter"},
    {"poly_router", Added::kAdapter, "a Poly adapter"},
    {"fourierft_", Added::kAdapter, "a FourierFT adapter"},
    {"waveft_", Added::kAdapter, "a WaveFT adapter"},
    {"shira_weight", Added::kAdapter, "a SHiRA adapter"},
    {"c3a_kernel", Added::kAdapter, "a C3A adapter"},
    {"road_theta", Added::kAdapter, "a RoAd adapter"},
    {"road_alpha", Added::kAdapter, "a RoAd adapter"},
    {"miss_block", Added::kAdapter, "a MiSS adapter"},
    {"bone_block", Added::kAdapter, "a Bone adapter"},
    {"psoft_", Added::kAdapter, "a PSOFT adapter"},
    {"osf_svd_params", Added::kAdapter, "an OSF adapter"},
    {"ln_tuning_layers", Added::kReplaced, "norms that PEFT trained (ln_tuning)"},
    {"modules_to_save", Added::kReplaced, "copies of modules that PEFT trained (modules_to_save)"},
    {"trainable_tokens_", Added::kReplaced, "rows of an embedding that PEFT trained (trainable_tokens)"},
    {"base_layer", Added::kBelow, ""},
    {"original_module", Added::kBelow, ""},
    {"token_adapter", Added::kBelow, ""},
    {"prompt_encoder", Added::kPrompt, "a prompt that PEFT trained (prompt_encoder)"},
    {"adaption_prompt", Added::kPrompt, "prompts that PEFT trained (adaption_prompt)"},
    {"adaption_gate", Added::kPrompt, "prompts that PEFT trained (adaption_prompt)"},
};

}  // namespace

const AdapterPart* adapter_part(std::string_view word) {
  for (const AdapterPart& part : kAdapterParts)
    if (part.word.ends_with('_') ? word.starts_with(part.word) : word == part.word) return &part;
  return nullptr;
}

}  // namespace ggufmill::huggingface
