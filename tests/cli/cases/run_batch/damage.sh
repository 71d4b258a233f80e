printf 'x' | dd of=models/b-F16.gguf bs=1 seek=0 conv=notrunc status=none
