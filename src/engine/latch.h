/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * In the target nothing ever exits. A fault of ours turns tracing off for good:
 * every hit goes straight to its function's body, calls that are open return
 * as they would. The reason is told in the ring. Context: any.
 */
#ifndef PB_ENGINE_LATCH_H
#define PB_ENGINE_LATCH_H
#include "engine/latched.h"

void pb_latch(const char *reason);

#pragma GCC poison exit _exit abort assert raise
#endif
