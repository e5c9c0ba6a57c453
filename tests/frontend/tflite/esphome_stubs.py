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
    "esphome/core/helpers.h": """
#pragma once
#include <cstdint>
#include <string>
namespace esphome {
inline uint32_t fnv1_hash(const std::string &text) {
  uint32_t hash = 2166136261u;
  for (char c : text) hash = hash * 16777619u ^ (uint8_t) c;
  return hash;
}
}
""",
    "esphome/core/preferences.h": """
#pragma once
#include <cstdint>
#include <cstring>
#include <map>
#include <vector>
namespace esphome {
inline std::map<uint32_t, std::vector<uint8_t>> flash;
struct ESPPreferenceObject {
  uint32_t key{0};
  template<typename T> bool save(const T *value) {
    const uint8_t *bytes = reinterpret_cast<const uint8_t *>(value);
    flash[this->key].assign(bytes, bytes + sizeof(T));
    return true;
  }
  template<typename T> bool load(T *value) {
    if (flash.count(this->key) == 0) return false;
    std::memcpy(value, flash[this->key].data(), sizeof(T));
    return true;
  }
};
struct ESPPreferences {
  template<typename T> ESPPreferenceObject make_preference(uint32_t type) { return {type}; }
};
inline ESPPreferences the_preferences;
inline ESPPreferences *global_preferences = &the_preferences;
}
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

using namespace esphome::NAME;

template<typename A> void play(WakeWordModel *word) {
  A action;
  action.set_parent(word);
  action.play();
}

/* PROGRAM CUTOFF WINDOW STOP VAD_CUTOFF [SAMPLES+NUMBER | SAMPLES-NUMBER]...: samples from standard input, in
 * chunks of changing size. Words are enabled and disabled at the first chunk after a number of samples. The
 * last word is internal if there are several. */
int main(int count, char **words) {
  esphome::microphone::MicrophoneSource source;
  MicroWakeWord component;
  component.set_microphone_source(&source);
  component.set_stop_after_detection(atoi(words[3]) != 0);
  std::vector<WakeWordModel *> models;
  for (int i = 0; i < WORDS; i++) {
    const std::string number = std::to_string(i);
    const bool internal = i != 0 && i == WORDS - 1;
    models.push_back(new WakeWordModel("id" + number, i, atoi(words[1]), atoi(words[2]), "word " + number,
                                       i == 0, internal));
    models.back()->add_trained_language("en");
    component.add_wake_word_model(models.back());
  }
#ifdef VAD
  component.add_vad_model(WORDS, atoi(words[4]), 3);
#endif
  size_t heard = 0;
  component.get_wake_word_detected_trigger()->action = [&](const std::string &said) {
    printf("%zu %s\\n", heard, said.c_str());
  };
  component.setup();
  component.dump_config();
  for (auto *word : component.get_wake_words())
    printf("listed %s '%s' %s\\n", word->get_id().c_str(), word->get_wake_word().c_str(),
           word->get_trained_languages()[0].c_str());
  StartAction<> start;
  StopAction<> stop;
  IsRunningCondition<> running;
  start.set_parent(&component);
  stop.set_parent(&component);
  running.set_parent(&component);
  if (component.is_failed() || running.check()) return 1;
  start.play();
  if (!running.check() || !source.running) return 2;
  int next = 5;
  for (size_t size = 2;; size = size * 7 % 1009 / 2 * 2 + 2) {
    char *sign;
    for (; next < count && strtoul(words[next], &sign, 10) <= heard; next++) {
      WakeWordModel *word = models[atoi(sign + 1)];
      *sign == '+' ? play<EnableModelAction<>>(word) : play<DisableModelAction<>>(word);
      ModelIsEnabledCondition<> enabled;
      enabled.set_parent(word);
      printf("switched %s %zu %d\\n", sign, heard, enabled.check());
    }
    std::vector<uint8_t> data(size);
    const size_t read = fread(data.data(), 1, size, stdin);
    data.resize(read);
    if (read == 0 || !source.running) break;
    source.callback(data);
    heard += read / 2;
    component.loop();
  }
  stop.play();
  for (auto *word : models) {
    WakeWordModel again(word->get_id(), 0, 1, 1, "", false, word->get_internal_only());
    printf("after a restart %s %d\\n", word->get_id().c_str(), again.is_enabled());
    delete word;
  }
  return running.check() || source.running ? 3 : 0;
}
"""
