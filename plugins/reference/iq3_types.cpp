#include "plugins/reference/iq3_types.h"

namespace ggufmill::reference {

template struct LatticeCodec<Iq3XxsFormat>;
template struct LatticeCodec<Iq3SFormat>;

}  // namespace ggufmill::reference
