/* The measurer as a program of its own; frameworks have another entry. */
#include "measurer.h"

int main(void)
{
    measurer_start();
    for (;;) {
        measurer_turn();
    }
}
