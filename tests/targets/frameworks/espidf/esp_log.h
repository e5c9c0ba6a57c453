typedef enum { ESP_LOG_NONE, ESP_LOG_ERROR } esp_log_level_t;
void esp_log_level_set(const char *tag, esp_log_level_t level);
