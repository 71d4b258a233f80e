#include "plugins/reference/iq2_types.h"

namespace ggufmill::reference {

template struct LatticeCodec<Iq2XxsFormat>;
template struct LatticeCodec<Iq2XsFormat>;
template struct LatticeCodec<Iq2SFormat>;

}  // namespace ggufmill::reference
