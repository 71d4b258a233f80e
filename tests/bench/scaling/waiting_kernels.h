/* Kernels that wait instead of computing: for as long as the measured kernels need, without a CPU. They write nothing.
 */
#ifndef GGUFMILL_WAITING_KERNELS_H
#define GGUFMILL_WAITING_KERNELS_H

#include <stdint.h>

/* The time that a kernel waits for each weight. `type` and `operation` are as in ggufmill_kernels.h. */
typedef struct waiting_speed {
  const char* type;
  uint32_t operation;
  double nanoseconds;
} waiting_speed;

/* Symbol of the function that sets the speed of one kernel; returns 0 if there is no such kernel. To be called before
 * the kernels run. */
#define WAITING_SET_SPEED "waiting_set_speed"
typedef int (*waiting_set_speed_function)(const waiting_speed* speed);

/* Symbol of the function that lets every second thread wait so many times as long, as efficiency cores compute. */
#define WAITING_SET_SLOW_FACTOR "waiting_set_slow_factor"
typedef void (*waiting_set_slow_factor_function)(double factor);

/* Symbol of the function that returns for how many nanoseconds all calls together have waited since the last one. */
#define WAITING_TAKE_TOTAL "waiting_take_total"
typedef uint64_t (*waiting_take_total_function)(void);

#endif
