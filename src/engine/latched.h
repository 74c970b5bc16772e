/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The two states in which the agent traces nothing any more. latch.c sets pb_latched, and detach.c
 * sets pb_detached. Both states are permanent. Only another attach resets them, if one is possible
 * (renew.h). Context: any.
 */
#ifndef PB_ENGINE_LATCHED_H
#define PB_ENGINE_LATCHED_H
#include <stdbool.h>

/* The agent found itself broken (latch.h). */
extern bool pb_latched;
/* The agent has begun to detach: no further module or image is traced. If the program sets a signal
 * handler, the agent doesn't put its own handler in place of it any more. */
extern bool pb_detached;
#endif
