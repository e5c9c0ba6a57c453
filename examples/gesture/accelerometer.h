/* The accelerometer of the board: its last sample, in g. */
#pragma once

/* Arduino Nano 33 BLE Sense Rev2: remove the two slashes. Rev1 has another sensor. */
// #define NANO_REV2

#if defined(ARDUINO_ARDUINO_NANO33BLE)
#if defined(NANO_REV2)
#include <Arduino_BMI270_BMM150.h>
#else
#include <Arduino_LSM9DS1.h>
#endif

inline bool accelerometer_begin()
{
    return IMU.begin() != 0;
}

inline bool accelerometer_read(float g[3])
{
    return IMU.readAcceleration(g[0], g[1], g[2]) != 0;
}

#elif defined(ARDUINO)
/* Seeed XIAO nRF52840 Sense, or another board with an LSM6DS3 at this address. */
#include <LSM6DS3.h>

LSM6DS3 sensor(I2C_MODE, 0x6A);

inline bool accelerometer_begin()
{
    sensor.settings.accelRange = 4;
    return sensor.begin() == 0;
}

inline bool accelerometer_read(float g[3])
{
    g[0] = sensor.readFloatAccelX();
    g[1] = sensor.readFloatAccelY();
    g[2] = sensor.readFloatAccelZ();
    return true;
}

#else
/* A computer: see pc/main.cpp. */
bool accelerometer_begin();
bool accelerometer_read(float g[3]);
#endif
