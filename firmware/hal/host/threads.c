/* The cores of the host beside the first one are threads: each thread begins with its first call and stays. */
#define _POSIX_C_SOURCE 200809L

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "mcud_cores.h"

enum { CORES = 8 }; /* as in boards/host.toml */

typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t posted;
    mcud_core_work *work; /* NULL once the thread has begun it */
    void *argument;
    uint32_t busy;
    uint32_t exists;
} core_thread;

static core_thread threads[CORES];

static void *serve(void *argument)
{
    core_thread *const self = argument;
    for (;;) {
        pthread_mutex_lock(&self->lock);
        while (self->work == NULL) {
            pthread_cond_wait(&self->posted, &self->lock);
        }
        mcud_core_work *const work = self->work;
        void *const its_argument = self->argument;
        self->work = NULL;
        pthread_mutex_unlock(&self->lock);
        work(its_argument);
        __atomic_store_n(&self->busy, 0u, __ATOMIC_RELEASE);
    }
    return NULL;
}

static void begin(core_thread *self)
{
    pthread_t thread;
    if (pthread_mutex_init(&self->lock, NULL) != 0 || pthread_cond_init(&self->posted, NULL) != 0 ||
        pthread_create(&thread, NULL, serve, self) != 0) {
        fputs("the system has no thread for a further core\n", stderr);
        exit(EXIT_FAILURE);
    }
    pthread_detach(thread);
    self->exists = 1;
}

void mcud_core_start(uint32_t core, mcud_core_work *work, void *argument)
{
    core_thread *const other = &threads[core];
    if (!other->exists) {
        begin(other);
    }
    __atomic_store_n(&other->busy, 1u, __ATOMIC_RELAXED);
    pthread_mutex_lock(&other->lock);
    other->work = work;
    other->argument = argument;
    pthread_cond_signal(&other->posted);
    pthread_mutex_unlock(&other->lock);
}

int32_t mcud_core_is_busy(uint32_t core)
{
    return __atomic_load_n(&threads[core].busy, __ATOMIC_ACQUIRE) != 0u;
}

void mcud_core_wake(void)
{
}

void mcud_core_wait(void)
{
    sched_yield();
}
