/* Of an Arduino core what the measurer's sketch uses. */
#ifndef ARDUINO_H
#define ARDUINO_H

#include <stddef.h>
#include <stdint.h>

class SerialLine
{
  public:
    void begin(unsigned long baud);
    int read(void);
    size_t write(const uint8_t *bytes, size_t count);
    void flush(void);
};

extern SerialLine Serial;

unsigned long micros(void);
void yield(void);
void setup(void);
void loop(void);

#endif
