#pragma once
// Shell scripts in place of llama.cpp's programs, which print what those print. `{}` is replaced by further commands,
// and each call is a line of calls.txt.

namespace ggufmill {

// A script that copies a prepared file to the argument after -o.
inline constexpr const char* kImatrix = R"(#!/bin/sh
echo imatrix "$@" >> calls.txt
{}
while [ $# -gt 1 ]; do [ "$1" = -o ] && cp prepared.gguf "$2"; shift; done
echo "compute_imatrix: computing over 2 chunks, n_ctx=512"
echo "[1]5.1,[2]4.9,"
)";

// A script that writes its base predictions, or compares with them.
inline constexpr const char* kPerplexity = R"(#!/bin/sh
echo perplexity "$@" >> calls.txt
{}
case "$*" in
*--kl-divergence) cat <<END
chunk PPL ln(PPL(Q)/PPL(base)) KL Divergence Same top p
Mean PPL(Q)                   :  10.500000 ±   0.100000
Mean PPL(base)                :  10.000000 ±   0.100000
Mean    KLD:   0.050000 ±   0.001000
Maximum KLD:   1.250000
99.0%   KLD:   0.500000
Same top p: 91.250 ± 0.100 %
END
;;
*) while [ $# -gt 1 ]; do [ "$1" = --kl-divergence-base ] && echo predictions of the base model > "$2"; shift; done ;;
esac
)";

}  // namespace ggufmill
