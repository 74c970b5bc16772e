/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The two variables of sandbox.h. loader.c sets pb_filtered at the start. prctl.c raises
 * pb_sandboxed when the program asks for a filter or for strict mode, and lowers it if the call
 * fails. Otherwise neither variable is cleared before the next attach (renew.c).
 */
#include "engine/sandbox.h"

uint32_t pb_sandboxed;
bool pb_filtered;
