/* bin/ggufmill of an archive made by `./dev dist`, linked statically: starts libexec/ggufmill with the dynamic loader
 * and the C library of the archive, whose place is found at run time. The program finds its other libraries by its own
 * DT_RPATH. The environment stays as it is, because hooks and other programs inherit it, except that variables that
 * name libraries for the loader are renamed; the program restores them (pipeline/cli/archive.cpp). */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#define PROGRAM "libexec/ggufmill"
#define LOADER "lib/runtime/libc/" GGUFMILL_LOADER

/* Sets `root` to the folder above that of the launcher if it contains the program. */
static int find_root(const char* launcher, char root[PATH_MAX]) {
  char program[PATH_MAX + sizeof PROGRAM];
  if (!launcher || !realpath(launcher, root)) return 0;
  for (int up = 0; up < 2; ++up) {
    char* const slash = strrchr(root, '/');
    if (!slash) return 0;
    *slash = '\0';
  }
  snprintf(program, sizeof program, "%s/" PROGRAM, root);
  return access(program, X_OK) == 0;
}

/* The loader of the archive must not load libraries that were built for the C library of the system. */
static void hide_from_loader(char** environment) {
  static const char* const kNames[] = {"LD_PRELOAD=", "LD_AUDIT="};
  for (; *environment; ++environment)
    for (size_t i = 0; i < sizeof kNames / sizeof *kNames; ++i)
      if (strncmp(*environment, kNames[i], strlen(kNames[i])) == 0) {
        char* renamed = NULL;
        if (asprintf(&renamed, "GGUFMILL_%s", *environment) >= 0) *environment = renamed;
      }
}

int main(int argc, char** argv) {
  const char* const started = (const char*)getauxval(AT_EXECFN);
  char root[PATH_MAX], program[PATH_MAX + sizeof PROGRAM], loader[PATH_MAX + sizeof LOADER];
  /* /proc may not be mounted; the path may be that of an open file, as after fexecve() */
  if (!find_root("/proc/self/exe", root) && !find_root(started, root)) {
    fprintf(stderr,
            "ggufmill: error: no %s in the folder above that of '%s'\n"
            "  help: keep the unpacked archive as it is, and make a symbolic link to its bin/ggufmill\n",
            PROGRAM, started ? started : "ggufmill");
    return 6;
  }
  snprintf(program, sizeof program, "%s/" PROGRAM, root);
  snprintf(loader, sizeof loader, "%s/" LOADER, root);

  /* An empty --library-path replaces LD_LIBRARY_PATH, and no libraries of the system are looked up in its cache. */
  const char* const options[] = {
      loader, "--argv0", argc > 0 ? argv[0] : "ggufmill", "--inhibit-cache", "--library-path", "", program};
  const size_t count = sizeof options / sizeof *options;
  const char** const arguments = calloc(count + (size_t)argc + 1, sizeof *arguments);
  if (!arguments) {
    fputs("ggufmill: error: out of memory\n", stderr);
    return 75;
  }
  memcpy(arguments, options, sizeof options);
  for (int i = 1; i < argc; ++i) arguments[count + (size_t)i - 1] = argv[i];
  hide_from_loader(environ);
  execv(loader, (char**)arguments);
  fprintf(stderr, "ggufmill: error: %s cannot be started: %s\n", loader, strerror(errno));
  return 6;
}
