#ifndef FREERTOS_H
#define FREERTOS_H
#include <stdint.h>
typedef uint8_t StackType_t;
typedef int BaseType_t;
typedef unsigned UBaseType_t;
typedef uint32_t TickType_t;
typedef struct {
    void *reserved[20];
} StaticTask_t;
#define portMAX_DELAY ((TickType_t)0xFFFFFFFFul)
#define portNUM_PROCESSORS 2
#endif
