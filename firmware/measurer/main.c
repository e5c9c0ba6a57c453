/* The measurer as a separate program; frameworks have another entry. */
#include "measurer.h"

int main(void)
{
    measurer_start();
    for (;;) {
        measurer_turn();
    }
}
