/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The agent never ends the program. If it finds itself broken, it turns tracing off for good. From
 * then on no new call is recorded: each entry goes on with the function's body, and calls return to
 * their callers as before. The reason is in the ring. Context: any.
 */
#ifndef PB_ENGINE_LATCH_H
#define PB_ENGINE_LATCH_H
#include "engine/latched.h"

void pb_latch(const char *reason);

#pragma GCC poison exit _exit abort assert raise
#endif
