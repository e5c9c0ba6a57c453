#include <stdint.h>
struct k_sem {
    unsigned count;
    unsigned limit;
};
typedef struct {
    int64_t ticks;
} k_timeout_t;
#define K_FOREVER ((k_timeout_t){-1})
#define K_SEM_DEFINE(name, initial, most) struct k_sem name = {initial, most}
void k_sem_give(struct k_sem *semaphore);
int k_sem_take(struct k_sem *semaphore, k_timeout_t timeout);
uint32_t k_cycle_get_32(void);
int sys_clock_hw_cycles_per_sec(void);
