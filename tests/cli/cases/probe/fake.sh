#!/bin/sh
# Stands for llama-perplexity: the divergence that it says follows from the size of the model.
for word; do
  case $word in *.base.part) echo answers > "$word" ;; esac
done
echo "$2" >> calls.txt
[ -e fails ] && { echo "error: out of memory" >&2; exit 3; }
case "$*" in *'--kl-divergence '*) echo "Mean    KLD:   0.00$(stat -c %s "$2") ±   0.000001" ;; esac
exit 0
