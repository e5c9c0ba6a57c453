"""Headers of ESPHome of a few lines, and a program around a component that hears the samples of a file."""

from __future__ import annotations

HEADERS = {
    "esphome/core/log.h": """
#pragma once
#include <cstdio>
#define ESP_LOGE(tag, ...) (printf("E "), printf(__VA_ARGS__), printf("\\n"))
#define ESP_LOGD(tag, ...) (printf("D "), printf(__VA_ARGS__), printf("\\n"))
#define ESP_LOGCONFIG(tag, ...) (printf("C "), printf(__VA_ARGS__), printf("\\n"))
""",
    "esphome/core/component.h": """
#pragma once
namespace esphome {
namespace setup_priority { const float AFTER_CONNECTION = 100.0f; }
class Component {
 public:
  virtual ~Component() = default;
  virtual void setup() {}
  virtual void loop() {}
  virtual void dump_config() {}
  virtual float get_setup_priority() const { return 0; }
  void mark_failed() { this->failed_ = true; }
  bool is_failed() const { return this->failed_; }
 private:
  bool failed_{false};
};
}
""",
    "esphome/core/automation.h": """
#pragma once
#include <functional>
namespace esphome {
template<typename... Ts> class Trigger {
 public:
  std::function<void(const Ts &...)> action;
  void trigger(const Ts &...x) { this->action(x...); }
};
template<typename... Ts> class Action {
 public:
  virtual ~Action() = default;
  virtual void play(const Ts &...x) = 0;
};
template<typename... Ts> class Condition {
 public:
  virtual ~Condition() = default;
  virtual bool check(const Ts &...x) = 0;
};
template<typename T> class Parented {
 public:
  void set_parent(T *parent) { this->parent_ = parent; }
 protected:
  T *parent_{nullptr};
};
}
""",
    "esphome/components/microphone/microphone_source.h": """
#pragma once
#include <cstdint>
#include <functional>
#include <vector>
namespace esphome { namespace microphone {
class MicrophoneSource {
 public:
  bool running{false};
  std::function<void(const std::vector<uint8_t> &)> callback;
  template<typename F> void add_data_callback(F &&f) { this->callback = f; }
  void start() { this->running = true; }
  void stop() { this->running = false; }
};
} }
""",
}

MAIN = """
#include "automation.h"
#include <cstdio>
#include <cstdlib>

/* PROGRAM CUTOFF WINDOW STOP: samples from standard input, in chunks of changing size. */
int main(int, char **words) {
  esphome::microphone::MicrophoneSource source;
  esphome::NAME::WakeWord word;
  word.set_microphone_source(&source);
  word.set_wake_word("a \\"word\\"");
  word.set_probability_cutoff(atoi(words[1]));
  word.set_sliding_window_size(atoi(words[2]));
  word.set_stop_after_detection(atoi(words[3]) != 0);
  size_t heard = 0;
  word.get_wake_word_detected_trigger()->action = [&](const std::string &said) {
    printf("%zu %s\\n", heard, said.c_str());
  };
  word.setup();
  word.dump_config();
  esphome::NAME::StartAction<> start;
  esphome::NAME::StopAction<> stop;
  esphome::NAME::IsRunningCondition<> running;
  start.set_parent(&word);
  stop.set_parent(&word);
  running.set_parent(&word);
  if (word.is_failed() || running.check()) return 1;
  start.play();
  if (!running.check() || !source.running) return 2;
  for (size_t size = 2;; size = size * 7 % 1009 / 2 * 2 + 2) {
    std::vector<uint8_t> data(size);
    const size_t read = fread(data.data(), 1, size, stdin);
    data.resize(read);
    if (read == 0 || !source.running) break;
    source.callback(data);
    heard += read / 2;
    word.loop();
  }
  stop.play();
  return running.check() || source.running ? 3 : 0;
}
"""
