# Makes the leftover files of a killed run.
printf 'weights' > out/.b.gguf.ggufmill-00112233445566778899aabbccddeeff
printf '{"format":"ggufmill journal","version":1,"ggufmill":"0.0.1","identity":"00","units":1,"sources":[]}\n' \
  > out/.a-00001-of-00002.gguf.ggufmill-00112233445566778899aabbccddeeff.journal
