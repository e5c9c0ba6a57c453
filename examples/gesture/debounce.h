/* One report for each gesture, out of a class for each run. */
#pragma once

struct Debounce {
    int needed = 3;   /* runs in succession that a class must lead: 0.24 s */
    int leader = -1;  /* of the last run, and for how many runs */
    int runs = 0;
    int reported = 0; /* class 0 is rest */

    /* Takes the class of a run, -1 for none. Returns a class that has led long enough, once until another has, else -1. */
    int add(int label)
    {
        runs = label == leader ? runs + 1 : 1;
        leader = label;
        if (runs < needed || label < 0 || label == reported) {
            return -1;
        }
        reported = label;
        return label;
    }
};
