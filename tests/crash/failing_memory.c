/* Simulates running out of memory in programs that are started with this library as LD_PRELOAD: from main() on,
 * allocation number FAIL_AT (from 0) fails and, with FAIL_MODE=always, all later ones. malloc and its variants,
 * anonymous mmap, and started threads are counted. With FAIL_COUNT=FILE, the number of allocations is written to FILE
 * at exit.
 *
 * Also useful for manual sweeps: for k in $(seq 0 5000); do FAIL_AT=$k LD_PRELOAD=... ggufmill ...; done */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The glibc implementations behind the functions replaced here. */
extern void* __libc_malloc(size_t bytes);
extern void* __libc_calloc(size_t count, size_t bytes);
extern void* __libc_realloc(void* memory, size_t bytes);
extern void* __libc_memalign(size_t alignment, size_t bytes);

typedef int (*main_function)(int, char**, char**);
typedef int (*start_function)(main_function, int, char**, main_function, void (*)(void), void (*)(void), void*);
typedef int (*thread_function)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);

static atomic_long allocations;
static atomic_int counts;
static long fail_at = -1;
static int fails_always;
static main_function real_main;
static thread_function real_thread;

static int fails(void) {
  if (!counts) return 0;
  const long number = atomic_fetch_add(&allocations, 1);
  if (fail_at < 0 || (fails_always ? number < fail_at : number != fail_at)) return 0;
  errno = ENOMEM;
  return 1;
}

void* malloc(size_t bytes) { return fails() ? NULL : __libc_malloc(bytes); }
void* calloc(size_t count, size_t bytes) { return fails() ? NULL : __libc_calloc(count, bytes); }
void* realloc(void* memory, size_t bytes) { return bytes != 0 && fails() ? NULL : __libc_realloc(memory, bytes); }
void* memalign(size_t alignment, size_t bytes) { return fails() ? NULL : __libc_memalign(alignment, bytes); }
void* aligned_alloc(size_t alignment, size_t bytes) { return fails() ? NULL : __libc_memalign(alignment, bytes); }
int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  void* const got = fails() ? NULL : __libc_memalign(alignment, bytes);
  if (got) *memory = got;
  return got ? 0 : ENOMEM;
}

void* mmap(void* at, size_t bytes, int access, int flags, int file, off_t offset) {
  if (file < 0 && fails()) return MAP_FAILED;
  return (void*)syscall(SYS_mmap, at, bytes, access, flags, file, offset);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*), void* argument) {
  if (!real_thread) real_thread = (thread_function)dlsym(RTLD_NEXT, "pthread_create");
  return fails() ? EAGAIN : real_thread(thread, attributes, body, argument);
}

static void write_count(void) {
  const char* const path = getenv("FAIL_COUNT");
  char text[32];
  const int bytes = snprintf(text, sizeof text, "%ld\n", atomic_load(&allocations));
  const int file = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
  if (file < 0) return;
  if (write(file, text, (size_t)bytes) != bytes) abort();
  close(file);
}

static int counted_main(int count, char** words, char** environment) {
  counts = 1;
  const int code = real_main(count, words, environment);
  counts = 0;
  write_count();
  return code;
}

int __libc_start_main(main_function program, int count, char** words, main_function begin, void (*end)(void),
                      void (*loader_end)(void), void* stack_end);
int __libc_start_main(main_function program, int count, char** words, main_function begin, void (*end)(void),
                      void (*loader_end)(void), void* stack_end) {
  const char* const at = getenv("FAIL_AT");
  const char* const mode = getenv("FAIL_MODE");
  if (at) fail_at = atol(at);
  fails_always = mode && strcmp(mode, "always") == 0;
  unsetenv("LD_PRELOAD"); /* programs started by this one get all the memory */
  real_main = program;
  const start_function start = (start_function)dlsym(RTLD_NEXT, "__libc_start_main");
  return start(counted_main, count, words, begin, end, loader_end, stack_end);
}
