#define ESP_IDF_VERSION_VAL(major, minor, patch) (((major) << 16) | ((minor) << 8) | (patch))
#ifndef STUB_IDF_MAJOR
#define STUB_IDF_MAJOR 5
#endif
#define ESP_IDF_VERSION ESP_IDF_VERSION_VAL(STUB_IDF_MAJOR, 4, 0)
