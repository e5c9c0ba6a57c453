/* A head, a classifier that learns on the device: results of enrolling an example, and a limit of its statistics. */
#ifndef MCUD_HEAD_H
#define MCUD_HEAD_H

enum {
    MCUD_ENROLLED = 0,
    MCUD_ENROL_UNKNOWN = 1, /* there is no such label */
    MCUD_ENROL_FULL = 2     /* the head has no room for a further example of this class */
};

enum { MCUD_STATISTICS_LEAST = 16 }; /* inputs; with fewer, features stay as they are */

#endif
