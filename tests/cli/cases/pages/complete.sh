# Prints the completions of bash.
. /dev/stdin << END
$(ggufmill completion bash)
END
touch recipe.yaml
complete_words() {
  COMP_WORDS=("$@")
  COMP_CWORD=$(($# - 1))
  _ggufmill
  echo "$*: ${COMPREPLY[*]}"
}
complete_words ggufmill ver
complete_words ggufmill run rec
complete_words ggufmill run --no
complete_words ggufmill recipe sh
complete_words ggufmill plan --set rec
complete_words ggufmill completion z
