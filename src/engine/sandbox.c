/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The two flags of sandbox.h. loader.c sets pb_filtered at the start. sigaction.c sets pb_sandboxed
 * when the program asks for a filter or for strict mode. Neither flag is cleared before the next
 * attach (renew.c).
 */
#include "engine/sandbox.h"

bool pb_sandboxed, pb_filtered;
