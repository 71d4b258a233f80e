printf 'x' | dd of=earlier.gguf bs=1 seek=1000 conv=notrunc status=none
