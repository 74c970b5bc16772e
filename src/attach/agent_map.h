/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds the agent in a process that has loaded it. The caller must have read the mappings. Context:
 * the injector's thread. */
#ifndef PB_ATTACH_AGENT_MAP_H
#define PB_ATTACH_AGENT_MAP_H
#include "attach/subject.h"

/* Whether this is a mapping of an agent's file. */
bool attach_is_agent(const struct record_map *m);
/* Returns the address of a function of the agent, or 0. The caller must have opened mem. */
uint64_t attach_agent_function(const struct attach_subject *s, const char *name);
/* Whether this is an address in the agent. */
bool attach_in_agent(const struct attach_subject *s, uint64_t addr);
#endif
