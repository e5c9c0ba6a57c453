#include "freertos/FreeRTOS.h"
typedef void *TaskHandle_t;
typedef void (*TaskFunction_t)(void *parameters);
TaskHandle_t xTaskCreateStaticPinnedToCore(TaskFunction_t function, const char *name, uint32_t stack_bytes,
                                           void *parameters, UBaseType_t priority, StackType_t *stack,
                                           StaticTask_t *task, BaseType_t core);
