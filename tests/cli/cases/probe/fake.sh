#!/bin/sh
# Stands for llama-perplexity: the divergence that it says follows from the size of the model.
for word; do
  case $word in *.base.part) echo answers of the base model > "$word" ;; esac
done
echo "$2" >> calls.txt
[ -e fails ] && { echo "error: out of memory" >&2; exit 3; }
case "$*" in *--kl-divergence) cat <<END
Mean PPL(Q)                   :  10.500000 ±   0.100000
Mean PPL(base)                :  10.000000 ±   0.100000
Mean    KLD:   0.00$(stat -c %s "$2") ±   0.000001
Maximum KLD:   1.250000
99.0%   KLD:   0.500000
Same top p: 91.250 ± 0.100 %
END
esac
exit 0
