/* A kernel module whose kernels wait, see waiting_kernels.h. */
#define _GNU_SOURCE
#include "tests/bench/scaling/waiting_kernels.h"

#include <ggufmill_kernels.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

enum { BF16, Q4_K, Q6_K, Q8_0, KERNELS };

static double nanoseconds[KERNELS]; /* for each weight */
static atomic_uint_fast64_t total;
static double slow_factor = 1; /* for every second thread */
static atomic_uint threads;

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* A thread sleeps once it has to wait long enough for the system's clock to matter little. What it sleeps too long
 * counts for its next calls. */
static int32_t wait_for(int kernel, const ggufmill_call* call) {
  enum { SHORTEST_SLEEP = 200000 };
  static _Thread_local int64_t owed;
  static _Thread_local int is_exact;
  static _Thread_local unsigned number; /* of this thread, from 1 */
  if (number == 0) number = atomic_fetch_add(&threads, 1) + 1;
  const double factor = number % 2 == 0 ? slow_factor : 1;
  const int64_t more = (int64_t)((double)(call->rows * call->cols) * nanoseconds[kernel] * factor);
  atomic_fetch_add_explicit(&total, (uint64_t)more, memory_order_relaxed);
  owed += more;
  if (owed < SHORTEST_SLEEP) return GGUFMILL_OK;
  if (!is_exact) is_exact = prctl(PR_SET_TIMERSLACK, 1UL) == 0;
  const int64_t begin = now();
  const struct timespec sleep = {.tv_sec = owed / 1000000000, .tv_nsec = owed % 1000000000};
  nanosleep(&sleep, NULL);
  owed -= now() - begin;
  return GGUFMILL_OK;
}

static int32_t decode_bf16(const ggufmill_call* call) { return wait_for(BF16, call); }
static int32_t encode_q4_k(const ggufmill_call* call) { return wait_for(Q4_K, call); }
static int32_t encode_q6_k(const ggufmill_call* call) { return wait_for(Q6_K, call); }
static int32_t encode_q8_0(const ggufmill_call* call) { return wait_for(Q8_0, call); }

static const ggufmill_kernel kernels[KERNELS] = {
    [BF16] = {GGUFMILL_DECODE, 30, 1, 2, 0, 0, "BF16", decode_bf16},
    [Q4_K] = {GGUFMILL_ENCODE, 12, 256, 144, 0, 0, "Q4_K", encode_q4_k},
    [Q6_K] = {GGUFMILL_ENCODE, 14, 256, 210, 0, 0, "Q6_K", encode_q6_k},
    [Q8_0] = {GGUFMILL_ENCODE, 8, 32, 34, 0, 0, "Q8_0", encode_q8_0},
};

int waiting_set_speed(const waiting_speed* speed);
int waiting_set_speed(const waiting_speed* speed) {
  for (int i = 0; i < KERNELS; ++i) {
    if (strcmp(kernels[i].name, speed->type) != 0 || kernels[i].operation != speed->operation) continue;
    nanoseconds[i] = speed->nanoseconds;
    return 1;
  }
  return 0;
}

void waiting_set_slow_factor(double factor);
void waiting_set_slow_factor(double factor) { slow_factor = factor; }

uint64_t waiting_take_total(void);
uint64_t waiting_take_total(void) { return atomic_exchange(&total, 0); }

extern const ggufmill_module ggufmill_kernels_v1;
const ggufmill_module ggufmill_kernels_v1 = {
    .magic = GGUFMILL_MAGIC,
    .struct_size = sizeof(ggufmill_module),
    .abi_major = GGUFMILL_ABI_MAJOR,
    .abi_minor = GGUFMILL_ABI_MINOR,
    .kernel_size = sizeof(ggufmill_kernel),
    .kernel_count = KERNELS,
    .name = "waiting",
    .version = "1",
    .isa = "reference", /* found before the linked-in reference, which comes last of its rank */
    .cpu_features = "",
    .kernels = kernels,
};
