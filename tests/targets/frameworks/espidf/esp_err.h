#ifndef ESP_ERR_H
#define ESP_ERR_H
typedef int esp_err_t;
void stub_failed(esp_err_t error);
#define ESP_ERROR_CHECK(call)            \
    do {                                 \
        const esp_err_t result = (call); \
        if (result != 0) {               \
            stub_failed(result);         \
        }                                \
    } while (0)
#endif
