# Counts the test cases in the outputs of all tests, and those that are not built for Windows by reason, from
# not_on_windows.tsv.
FNR == NR {
  if (match($0, /[0-9]+ assertions? in [0-9]+ test cases?/)) {
    split(substr($0, RSTART, RLENGTH), words, " ")
    passed += words[4]
  } else if (match($0, /^test cases: *[0-9]+ \|/)) {
    text = $0
    gsub(/[^0-9a-z| ]/, "", text)
    split(text, parts, "|")
    for (i in parts)
      if (parts[i] ~ /passed/) passed += parts[i] + 0
      else if (parts[i] ~ /failed/) failed += parts[i] + 0
  }
  next
}
{
  skipped[$3] += $2
  files[$3]++
}
END {
  printf "windows: %d test cases of Catch2 passed, %d failed\n", passed, failed
  for (reason in skipped) printf "  skipped: %d in %d files: %s\n", skipped[reason], files[reason], reason
}
