# Each verb's help, manual page and completion are of one table: what help says stands in the others.
ggufmill --help | sed -n '/^verbs:/,/^$/p' | sed 1d | while read -r verb summary; do
  [ -n "$verb" ] || continue
  ggufmill manual "$verb" > page.1 || echo "no manual page: $verb"
  sed 's/\\-/-/g' page.1 > page.txt
  if command -v groff > /dev/null; then groff -man -ww -z -Tutf8 page.1 2>&1; fi
  for shell in bash zsh fish; do
    ggufmill completion "$shell" > "$shell.txt"
    grep -q "$verb" "$shell.txt" || echo "$shell does not know $verb"
  done
  ggufmill "$verb" --help | sed -n '/^options:/,/^$/s/^  \(-. \[ \)\{0,1\}\(--[a-z0-9-]*\).*/\2/p' > options.txt
  [ -s options.txt ] || echo "no options: $verb"
  ggufmill "$verb" --help | awk -v verb="$verb" '/^example:/ {exit} length($0) > 80 {print verb ": " $0}'
  while read -r option; do
    grep -q -- "$option" page.txt || echo "the manual page of $verb lacks $option"
    grep -q -- "$option" bash.txt || echo "bash lacks $option of $verb"
    grep -q -- "-l ${option#--}\b\|$option" fish.txt || echo "fish lacks $option of $verb"
    grep -q -- "$option" zsh.txt || echo "zsh lacks $option of $verb"
  done < options.txt
done
echo done
