# Cuts the output of the parts and makes it as long as it was.
for file in .out.gguf.ggufmill-*; do
  case $file in *.job) continue ;; esac
  size=$(stat -c %s "$file")
  truncate -s 0 "$file"
  truncate -s "$size" "$file"
done
