/* interrupt.h - how work that takes a while asks whether to go on. */
#ifndef BASE_INTERRUPT_H
#define BASE_INTERRUPT_H

#include "base/status.h"

/* {0}: nobody is asked. */
typedef struct {
    clef_status (*ask)(void *user, clef_error *err);
    void *user;
} interrupt;

/* CLEF_OK to go on; else the work ends at once and passes the status and its sentence up. */
static inline clef_status interrupt_ask(const interrupt *i, clef_error *err) {
    return i->ask == NULL ? CLEF_OK : i->ask(i->user, err);
}

#endif
