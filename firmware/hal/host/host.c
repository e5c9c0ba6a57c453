/* The host as a board: the serial line is standard input and output, a pipe or a socket. */
#define _POSIX_C_SOURCE 200809L

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#ifdef _WIN32
#include <fcntl.h>
#include <io.h>
#include <windows.h>
#define read _read
#define write(file, bytes, count) _write(file, bytes, (unsigned)(count))
#else
#include <poll.h>
#endif

#include "mcud_hal.h"

enum { STACK_BYTES = 65536, LINE_BYTES = 65536 };

static struct {
    uint8_t *stack_top;
    uint32_t received;
    uint32_t taken;
    uint32_t waiting; /* to be sent */
    uint8_t input[LINE_BYTES];
    uint8_t output[LINE_BYTES];
} host;

void hal_init(void)
{
    host.stack_top = __builtin_frame_address(0);
#ifdef _WIN32
    (void)_setmode(STDIN_FILENO, _O_BINARY);
    (void)_setmode(STDOUT_FILENO, _O_BINARY);
    for (uint32_t i = 0; i < STACK_BYTES; i += 4096) { /* touches the pages from the top down, so that they exist */
        *(volatile uint8_t *)(host.stack_top - i);
    }
#endif
}

uint32_t hal_clock_hz(void)
{
    return 1000000000u;
}

static void flush(void)
{
    uint32_t sent = 0;
    while (sent < host.waiting) {
        const ssize_t count = write(STDOUT_FILENO, host.output + sent, host.waiting - sent);
        if (count <= 0) {
            exit(EXIT_FAILURE);
        }
        sent += (uint32_t)count;
    }
    host.waiting = 0;
}

/* Bytes are collected until the zero that ends a frame: one system call for each frame. */
void hal_uart_write(const uint8_t *bytes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        host.output[host.waiting++] = bytes[i];
        if (bytes[i] == 0 || host.waiting == LINE_BYTES) {
            flush();
        }
    }
}

/* True when there is input; waits up to `timeout_ms` for it, or without limit if `timeout_ms` is negative. */
static int input_ready(int timeout_ms)
{
#ifdef _WIN32
    DWORD count = 0;
    if (timeout_ms < 0) {
        return 1; /* read waits */
    }
    if (!PeekNamedPipe(GetStdHandle(STD_INPUT_HANDLE), NULL, 0, NULL, &count, NULL)) {
        return GetLastError() == ERROR_BROKEN_PIPE; /* a broken pipe counts as input: its end */
    }
    return count > 0;
#else
    struct pollfd line = {STDIN_FILENO, POLLIN, 0};
    return poll(&line, 1, timeout_ms) > 0;
#endif
}

static void receive(void)
{
    const ssize_t count = read(STDIN_FILENO, host.input, sizeof host.input);
    if (count <= 0) {
        exit(EXIT_SUCCESS); /* the other end has gone */
    }
    host.received = (uint32_t)count;
    host.taken = 0;
}

int32_t hal_uart_read(void)
{
    if (host.taken == host.received) {
        if (!input_ready(0)) {
            return -1;
        }
        receive();
    }
    return host.input[host.taken++];
}

void hal_wait(void)
{
#if MCUD_CHAIN
    (void)input_ready(1); /* bytes of ports do not end it */
#else
    if (host.taken == host.received && input_ready(-1)) {
        receive();
    }
#endif
}

uint32_t hal_ticks(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint32_t)((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec);
}

uint32_t hal_ticks_hz(void)
{
    return 1000000000u;
}

uint8_t *hal_stack_limit(void)
{
    return host.stack_top - STACK_BYTES;
}

uint8_t *hal_stack_top(void)
{
    return host.stack_top;
}

void hal_exit(int32_t code)
{
    exit(code);
}
