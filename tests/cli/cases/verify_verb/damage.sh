(cd out && sha256sum -c a.gguf.sha256)
printf 'x' | dd of=out/a.gguf bs=1 seek=1000 conv=notrunc status=none
