"""The sketch of examples/gesture: compiled for its three sensors with stubs, and its rule of one report."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

SKETCH = Path(__file__).resolve().parents[2] / "examples" / "gesture"
LIBRARY = """
#pragma once
#include <stdint.h>
#define GESTURES_OUTPUT_COUNT 6u
#define GESTURES_INPUT_COUNT 12u
const int8_t *gestures_output(void);
int8_t gestures_quantize_input(float real);
uint32_t gestures_push(const int8_t *rows);
uint32_t gestures_selftest(void);
void gestures_reset(void);
"""
NANO_SENSOR = """
#pragma once
struct Sensor {
  int begin();
  int readAcceleration(float &x, float &y, float &z);
};
extern Sensor IMU;
"""
XIAO_SENSOR = """
#pragma once
#define I2C_MODE 0
struct Settings { unsigned accelRange; };
struct LSM6DS3 {
  LSM6DS3(unsigned char, unsigned char);
  Settings settings;
  int begin();
  float readFloatAccelX();
  float readFloatAccelY();
  float readFloatAccelZ();
};
"""
SENSORS = {
    "nano": (["-DARDUINO=100", "-DARDUINO_ARDUINO_NANO33BLE"], "Arduino_LSM9DS1.h", NANO_SENSOR),
    "nano_rev2": (
        ["-DARDUINO=100", "-DARDUINO_ARDUINO_NANO33BLE", "-DNANO_REV2"],
        "Arduino_BMI270_BMM150.h",
        NANO_SENSOR,
    ),
    "xiao": (["-DARDUINO=100"], "LSM6DS3.h", XIAO_SENSOR),
}
WARNINGS = ["-std=c++11", "-Wall", "-Wextra", "-Werror"]
RULE = """
#include "debounce.h"
#include <cstdio>
int main()
{
  Debounce debounce;
  for (int label; scanf("%d", &label) == 1;) {
    printf("%d ", debounce.add(label));
  }
}
"""


@pytest.mark.parametrize("board", SENSORS)
def test_the_sketch_compiles_for_its_sensors(board: str, tmp_path: Path) -> None:
    macros, header, sensor = SENSORS[board]
    for name in ("gestures.h", "gestures_selftest.h"):
        (tmp_path / name).write_text(LIBRARY, "utf-8")
    (tmp_path / header).write_text(sensor, "utf-8")
    words = ["g++", *WARNINGS, *macros, "-fsyntax-only", f"-I{tmp_path}", f"-I{SKETCH / 'pc'}"]
    words += ["-include", "Arduino.h", "-x", "c++", str(SKETCH / "gesture.ino")]
    subprocess.run(words, check=True, timeout=60)


def test_a_gesture_is_reported_once(tmp_path: Path) -> None:
    (tmp_path / "rule.cpp").write_text(RULE, "utf-8")
    words = ["g++", *WARNINGS, f"-I{SKETCH}", str(tmp_path / "rule.cpp"), "-o", str(tmp_path / "rule")]
    subprocess.run(words, check=True, timeout=60)
    labels = "0 0 0 3 3 -1 3 3 3 3 3 1 1 3 3 3 0 0 0 3 3 3"
    done = subprocess.run(
        [tmp_path / "rule"], input=labels.encode(), capture_output=True, check=True, timeout=9
    )
    said = [int(word) for word in done.stdout.split()]
    assert [(at, label) for at, label in enumerate(said) if label != -1] == [(8, 3), (18, 0), (21, 3)]
