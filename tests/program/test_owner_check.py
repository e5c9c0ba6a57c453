"""Debug builds with MCUD_CHECK_OWNER refuse a call that would disturb a program in its arena."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from mcudeploy.codegen.arenas import with_arenas
from mcudeploy.codegen.folder import write_folder
from mcudeploy.codegen.library import library_files
from mcudeploy.codegen.render import LibraryModel
from tests.linked import CLANG_STRICT, SANITIZED, STRICT, linked
from tests.program.test_golden import PROGRAMS, SOURCE, planned

PAGE = Path(__file__).parents[2] / "docs" / "c-api.md"


def shared(folder: Path) -> Path:
    """The folder of a library whose two models share an arena."""
    members = [planned(8), planned(2, "other")]
    programs = with_arenas([program for program, _ in members], "shared", "both")
    models = [
        LibraryModel(program, plan, SOURCE) for program, (_, plan) in zip(programs, members, strict=True)
    ]
    write_folder(folder, library_files(models, "both"))
    return folder


def run(folder: Path, main: str, *, compiler: str = "gcc", check: bool = True) -> int:
    """The exit code of a program; negative for a signal."""
    flags = SANITIZED if compiler == "gcc" and main is TWO else ("-O1",)
    owner = ("-DMCUD_CHECK_OWNER",) if check else ()
    program = linked(folder, main, *flags, *owner, "-pthread", compiler=compiler)
    return subprocess.run([program], check=False, timeout=20).returncode


RECORDS = """
#include <pthread.h>
#include <string.h>
#include "mcud_owner.h"
%s
static uint32_t faults, last;
void mcud_owner_fault(uint32_t code, const void *program, const void *holder)
{
    faults++;
    last = code + (program == holder ? 10u : 0u);
}
#define EXPECT(what) do { if (!(what)) { return __LINE__ %% 200 + 1; } } while (0)
"""
TWO = (
    RECORDS % '#include "residual.h"\n#include "other.h"'
    + """
static void run_other(void *user, uint32_t step)
{
    if (step == 1u) {
        other_run();
    }
    (void)user;
}

static void run_itself(void *user, uint32_t step)
{
    if (step == 1u) {
        residual_run();
    }
    (void)user;
}

int main(void)
{
    int8_t expected[RESIDUAL_OUTPUT_COUNT];
    memset(residual_input(), 3, RESIDUAL_INPUT_COUNT);
    residual_run();
    memcpy(expected, residual_output(), sizeof expected);
    memset(other_input(), 3, OTHER_INPUT_COUNT);
    for (uint32_t step = 0; step < OTHER_STEPS; step++) {
        other_step(step);
    }
    EXPECT(memcmp(expected, other_output(), sizeof expected) == 0);
    EXPECT(faults == 0u && mcud_owner_error() == MCUD_OWNER_OK);

    memset(residual_input(), 3, RESIDUAL_INPUT_COUNT);
    residual_run_hooked(run_other, 0); /* the other model runs nothing */
    EXPECT(faults == 1u && last == MCUD_OWNER_ARENA);
    EXPECT(memcmp(expected, residual_output(), sizeof expected) == 0);
    EXPECT(mcud_owner_error() == MCUD_OWNER_ARENA && mcud_owner_error() == MCUD_OWNER_OK);

    residual_run_hooked(run_itself, 0); /* it ends the outer run: all further steps are refused */
    EXPECT(faults == RESIDUAL_STEPS - 1u && last == MCUD_OWNER_ORDER);
    EXPECT(mcud_owner_error() == MCUD_OWNER_ORDER);

    faults = 0;
    other_step(0);
    other_step(2);
    EXPECT(faults == 1u && mcud_owner_error() == MCUD_OWNER_ORDER);
    other_step(1);
    other_step(0); /* begins again */
    other_run();
    residual_run();
    EXPECT(faults == 1u);
    return 0;
}
"""
)


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_two_models_in_one_arena_and_calls_in_a_hook(compiler: str, tmp_path: Path) -> None:
    assert run(shared(tmp_path), TWO, compiler=compiler) == 0


def test_without_a_function_of_the_application_the_program_stops(tmp_path: Path) -> None:
    main = '#include "other.h"\nint main(void)\n{\n    other_step(1);\n    return 0;\n}\n'
    assert run(shared(tmp_path), main) < 0
    assert run(tmp_path, main, check=False) == 0


THREAD = (
    RECORDS % '#include "recurrent.h"'
    + """
static void *enter(void *unused)
{
    recurrent_run();
    return unused;
}

static void feed(void *user, uint32_t input, int32_t first_row, int32_t rows, void *to)
{
    pthread_t thread;
    if (first_row == 0 && faults == 0u && pthread_create(&thread, 0, enter, 0) == 0) {
        pthread_join(thread, 0);
    }
    memset(to, 0, (uint32_t)rows * (RECURRENT_INPUT_COUNT / 16) * sizeof(int8_t));
    (void)user;
    (void)input;
}

int main(void)
{
    recurrent_set_feed(feed, 0);
    recurrent_run();
    EXPECT(faults == 1u && last == MCUD_OWNER_RUNNING + 10u && mcud_owner_error() == MCUD_OWNER_RUNNING);
    recurrent_run();
    EXPECT(faults == 1u);
    return 0;
}
"""
)


def test_a_thread_that_runs_a_model_during_a_run(tmp_path: Path) -> None:
    program, plan = PROGRAMS["recurrent_streamed"]()
    write_folder(tmp_path, library_files([LibraryModel(program, plan, SOURCE)], "recurrent"))
    (line,) = re.findall(r"_INPUT_SHAPE \{(.*?)\}", (tmp_path / "include" / "recurrent.h").read_text())
    rows = line.split(",")[0]
    assert run(tmp_path, THREAD.replace("COUNT / 16", f"COUNT / {rows}")) == 0


RACE = (
    RECORDS % '#include "residual.h"\n#include "other.h"'
    + """
static void *repeat(void *run)
{
    for (int i = 0; i < 2000; i++) {
        ((void (*)(void))(uintptr_t)run)();
    }
    return 0;
}

int main(void)
{
    pthread_t thread;
    EXPECT(pthread_create(&thread, 0, repeat, (void *)(uintptr_t)other_run) == 0);
    repeat((void *)(uintptr_t)residual_run);
    pthread_join(thread, 0);
    mcud_owner_error();
    faults = 0;
    residual_run(); /* nothing stays taken */
    other_run();
    EXPECT(mcud_owner_error() == MCUD_OWNER_OK);
    return 0;
}
"""
)


def test_threads_that_race_leave_nothing_taken(tmp_path: Path) -> None:
    assert run(shared(tmp_path), RACE) == 0


def test_a_second_run_on_several_cores_is_refused(tmp_path: Path) -> None:
    program, plan = PROGRAMS["residual_two_cores"]()
    write_folder(tmp_path, library_files([LibraryModel(program, plan, SOURCE)], "residual"))
    main = RECORDS % '#include "mcud_cores.h"\n#include "residual.h"' + CORES
    assert run(tmp_path, main) == 0


CORES = """
static pthread_t second;
static mcud_core_work *second_work;

static void *work_on_second(void *argument)
{
    second_work(argument);
    return 0;
}

/* Something else runs the model before the second core works. */
void mcud_core_start(uint32_t core, mcud_core_work *work, void *argument)
{
    residual_run();
    second_work = work;
    faults += pthread_create(&second, 0, work_on_second, argument) == 0 ? 0u : 9u;
    (void)core;
}

int32_t mcud_core_is_busy(uint32_t core)
{
    (void)core;
    return pthread_join(second, 0);
}

void mcud_core_wait(void)
{
}

void mcud_core_wake(void)
{
}

int main(void)
{
    residual_run();
    EXPECT(faults == 1u && last == MCUD_OWNER_RUNNING + 10u);
    return 0;
}
"""


RISCV = "riscv64-unknown-elf-gcc -march=rv32imc_zicsr -mabi=ilp32 --specs=picolibc.specs"


@pytest.mark.parametrize("core", ["arm-none-eabi-gcc -mcpu=cortex-m0 -mthumb", RISCV])
def test_cores_without_atomic_instructions_need_no_library(core: str, tmp_path: Path) -> None:
    folder = shared(tmp_path)
    sources = [folder / "src" / name for name in ("mcud_owner_slots.c", "mcud_tape.c")]
    flags = [*STRICT, "-Os", "-DMCUD_CHECK_OWNER", "-I", folder / "include", "-c"]
    subprocess.run([*core.split(), *flags, *sources], check=True, cwd=folder)
    tools = core.split("gcc", maxsplit=1)[0]
    names = subprocess.run([f"{tools}nm", folder / "mcud_owner_slots.o"], check=True, capture_output=True)
    assert b" U " not in names.stdout.replace(b" U abort", b"")


STUBS = {
    "FreeRTOS.h": """
#include <stddef.h>
#include <stdint.h>
typedef uint32_t StackType_t, TickType_t;
typedef unsigned long UBaseType_t;
typedef long BaseType_t;
#define pdTRUE 1
#define portMAX_DELAY 0xffffffffu
#define configMINIMAL_STACK_SIZE 128
#define tskIDLE_PRIORITY 0
""",
    "queue.h": """
typedef struct queue *QueueHandle_t;
QueueHandle_t xQueueCreate(UBaseType_t, UBaseType_t);
BaseType_t xQueueSend(QueueHandle_t, const void *, TickType_t);
BaseType_t xQueueReceive(QueueHandle_t, void *, TickType_t);
""",
    "task.h": """
typedef struct task *TaskHandle_t;
BaseType_t xTaskCreate(void (*)(void *), const char *, uint32_t, void *, UBaseType_t,
                       TaskHandle_t *);
TaskHandle_t xTaskGetCurrentTaskHandle(void);
BaseType_t xTaskNotifyGive(TaskHandle_t);
uint32_t ulTaskNotifyTake(BaseType_t, TickType_t);
""",
    "zephyr/kernel.h": """
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
typedef char k_thread_stack_t;
struct k_work { void (*handler)(struct k_work *); };
struct k_work_q { int unused; };
struct k_work_sync { int unused; };
struct k_work_queue_config;
#define K_THREAD_STACK_DEFINE(name, size) k_thread_stack_t name[size]
#define K_THREAD_STACK_SIZEOF(name) sizeof(name)
#define CONTAINER_OF(at, type, field) ((type *)(void *)((char *)(at) - offsetof(type, field)))
void k_work_init(struct k_work *, void (*)(struct k_work *));
void k_work_queue_init(struct k_work_q *);
void k_work_queue_start(struct k_work_q *, k_thread_stack_t *, size_t, int,
                        const struct k_work_queue_config *);
int k_work_submit_to_queue(struct k_work_q *, struct k_work *);
bool k_work_flush(struct k_work *, struct k_work_sync *);
""",
}


@pytest.mark.parametrize("system", ["FreeRTOS.h", "zephyr/kernel.h"])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_the_tasks_of_the_docs_compile(system: str, compiler: str, tmp_path: Path) -> None:
    program, plan = planned(8, "model")
    model = LibraryModel(replace(program, stack_bytes=400), plan, SOURCE)
    write_folder(tmp_path, library_files([model], "model"))
    blocks = re.findall(r"```c\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    (code,) = (block for block in blocks if system in block)
    (tmp_path / "zephyr").mkdir()
    for name, text in STUBS.items():
        (tmp_path / name).write_text(text)
    declared = "#include <stdint.h>\nvoid infer(const int8_t *, int8_t *);\nvoid start_inferences(void);\n"
    (tmp_path / "task.c").write_text(declared + code)
    flags = [*CLANG_STRICT, "-Wno-pedantic", "-I", tmp_path, "-I", tmp_path / "include"]
    subprocess.run([compiler, *flags, "-fsyntax-only", tmp_path / "task.c"], check=True)
