/* Who uses an arena, in debug builds: compile all files of the library with -DMCUD_CHECK_OWNER. Without that nothing is compiled.
 *
 * A program uses its arenas from its first step to its last one, also between two calls of MODEL_step(). A call that
 * would disturb it is refused: it calls mcud_owner_fault(), and runs nothing. A new run of the program between two
 * steps of an earlier run takes over; the next step of the earlier run is refused (ORDER). Writes before the first
 * step, to inputs and states, are not checked. For a program on several cores, a MODEL_run() during another one is
 * refused, but a run of another program in its arenas is not detected. On cores without atomic exchanges (Armv6-M,
 * RISC-V without A) the check sees no other core, and needs a privileged mode.
 */
#ifndef MCUD_OWNER_H
#define MCUD_OWNER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MCUD_OWNER_OK 0u
#define MCUD_OWNER_RUNNING 1u /* the program runs already: in another task, below an interrupt, hook or feed */
#define MCUD_OWNER_ARENA 2u   /* another program, which has not run its last step, uses some of the same bytes */
#define MCUD_OWNER_ORDER 3u   /* a step that is neither the program's first nor the one after its latest */
#define MCUD_OWNER_FULL 4u    /* a ninth program, while eight have not ended (MCUD_OWNER_SLOTS) */

/* The application may define it. It is called in the refused task or interrupt; if it returns, so does the refused
 * call. The default stops with __builtin_trap(). `program`: the MODEL_program of the refused call; `holder`: that of
 * the call which holds the arena (NULL for ORDER and FULL); a debugger shows their names. For a program on several
 * cores they are its `cores`. */
void mcud_owner_fault(uint32_t code, const void *program, const void *holder);

/* Returns the code of the first refused call since the last call of this function, or MCUD_OWNER_OK. */
uint32_t mcud_owner_error(void);

#ifdef __cplusplus
}
#endif

#endif
