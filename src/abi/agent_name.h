/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The name of the agent's file. Its number is the agent's SONAME version. */
#ifndef PB_ABI_AGENT_NAME_H
#define PB_ABI_AGENT_NAME_H
#include <stdbool.h>
#include <string.h>

#define PB_AGENT_PREFIX "libpatchbay.so."
#define PB_AGENT_NAME	PB_AGENT_PREFIX "0"

/* Whether a file with this name, or with this SONAME, is an agent of any version. */
static inline bool pb_is_agent_name(const char *name)
{
	return !strncmp(name, PB_AGENT_PREFIX, sizeof(PB_AGENT_PREFIX) - 1);
}
#endif
