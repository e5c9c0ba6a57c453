/* Who uses an arena, in debug builds: compile all files of the library with -DMCUD_CHECK_OWNER. Without that nothing is compiled.
 *
 * A program uses its arenas from its first step to its last one, also between two calls of MODEL_step(). A call that would
 * disturb it is refused: it calls mcud_owner_fault(), and runs nothing. A new run of the program between two steps of its run
 * takes over, and the next step of the former one is refused (ORDER). What happens before the first step is not checked: an
 * application that fills an input, and states that are set. Of a program for several cores, a call of MODEL_run() during
 * another one is found, but not another program in its arenas. Cores without atomic exchanges (Armv6-M, RISC-V without A)
 * see no other core, and need a privileged mode.
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
#define MCUD_OWNER_ORDER 3u   /* a step that is neither the first one nor the one after the program's last */
#define MCUD_OWNER_FULL 4u    /* a ninth program, while eight have not ended (MCUD_OWNER_SLOTS) */

/* The application may define it. It is called in the refused task or interrupt; if it returns, so does the refused call. The
 * default stops with __builtin_trap(). `program`, `holder`: the MODEL_program of the refused call and of the one in its
 * way (NULL for ORDER and FULL); a debugger shows their names. Those of a program for several cores are its `cores`. */
void mcud_owner_fault(uint32_t code, const void *program, const void *holder);

/* Returns the code of the first refused call since the last call of this function, or MCUD_OWNER_OK. */
uint32_t mcud_owner_error(void);

#ifdef __cplusplus
}
#endif

#endif
