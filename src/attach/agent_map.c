/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finds the agent in a process that has loaded it (agent_map.h).
 *
 * A forked child has its parent's agent. To make this agent leave the child, the injector needs the
 * address of a function of the agent. The new thread could find the function by dlopen() and
 * dlsym(), but another thread may hold the loader's lock for a long time, for example in the
 * constructor of a library. So the injector looks up the function in the symbol table of the
 * agent's file.
 */
#include "attach/agent_map.h"
#include <string.h>
#include <unistd.h>
#include "abi/agent_name.h"
#include "attach/mapped_file.h"

bool attach_is_agent(const struct record_map *m)
{
	const char *slash = strrchr(m->path, '/');

	return slash && pb_is_agent_name(slash + 1);
}

uint64_t attach_agent_function(const struct attach_subject *s, const char *name)
{
	for (size_t i = 0; i < s->nr_maps; i++) {
		const struct record_map *m = &s->maps[i], *text;
		const struct attach_range any = { 0, ~0ul };
		uint64_t address = 0;
		struct pb_elf e;
		int fd = !m->offset && attach_is_agent(m) ? attach_mapped_open(s, m, &e) : -1;

		if (fd < 0)
			continue;
		/* the agent's file begins at its address 0 */
		attach_find_functions(&e, m->start, &any,
				      &(struct attach_wanted){ name, &address, NULL }, 1);
		pb_elf_close(&e);
		close(fd);
		text = address ? attach_map_at(s, address) : NULL;
		if (text && text->exec)
			return address;
	}
	return 0;
}

bool attach_in_agent(const struct attach_subject *s, uint64_t addr)
{
	const struct record_map *m = attach_map_at(s, addr);

	return m && attach_is_agent(m);
}
