/* Results of enrolling an example in a head: a classifier that learns on the device. */
#ifndef MCUD_HEAD_H
#define MCUD_HEAD_H

enum {
    MCUD_ENROLLED = 0,
    MCUD_ENROL_UNKNOWN = 1, /* there is no such label */
    MCUD_ENROL_FULL = 2     /* the head has no room for a further example of this class */
};

#endif
