/* Runs the sketch on a computer: the samples come from standard input, three floats each. */
#include "Arduino.h"

#include "../accelerometer.h"

uint32_t milliseconds = 0;
Port Serial;

bool accelerometer_begin()
{
    return true;
}

bool accelerometer_read(float g[3])
{
    if (fread(g, sizeof(float), 3, stdin) != 3) {
        exit(0);
    }
    return true;
}

void setup();
void loop();

int main()
{
    setup();
    for (;;) {
        loop();
        milliseconds += 20;
    }
}
