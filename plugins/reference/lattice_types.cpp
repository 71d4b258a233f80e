#include "plugins/reference/lattice_types.h"

namespace ggufmill::reference {

template struct LatticeCodec<Iq2XxsFormat>;
template struct LatticeCodec<Iq2XsFormat>;
template struct LatticeCodec<Iq2SFormat>;
template struct LatticeCodec<Iq3XxsFormat>;
template struct LatticeCodec<Iq3SFormat>;

}  // namespace ggufmill::reference
