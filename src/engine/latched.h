/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The two states in which the agent traces nothing any more. latch.c sets the first, and detach.c
 * sets the second. Neither state ever ends. Context: any.
 */
#ifndef PB_ENGINE_LATCHED_H
#define PB_ENGINE_LATCHED_H
#include <stdbool.h>

/* The agent found itself broken (latch.h). */
extern bool pb_latched;
/* The observer hung up: nothing new is traced, and the program's signal handlers are its own. */
extern bool pb_detached;
#endif
