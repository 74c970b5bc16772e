/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A forked child has its parent's agent. The injector could find the agent's functions by dlopen()
 * and dlsym(), but the child may hold the loader's lock for a long time, for example in the
 * constructor of a library. So the functions are found in the table of symbols of the agent's file
 * (agent_map.h).
 */
#include "attach/agent_map.h"
#include <string.h>
#include <unistd.h>
#include "attach/mapped_file.h"

static const char agent_name[] = "libpatchbay.so.";

bool attach_is_agent(const struct record_map *m)
{
	const char *slash = strrchr(m->path, '/');

	return slash && !strncmp(slash + 1, agent_name, sizeof(agent_name) - 1);
}

static uint64_t find_symbol(struct pb_elf *e, const char *name)
{
	struct pb_elf_symbols symbols;

	if (!pb_elf_symbols(e, SHT_DYNSYM, &symbols))
		return 0;
	for (uint64_t i = 0; i < symbols.n; i++) {
		const char *found = pb_elf_string(&symbols.strings, symbols.v[i].st_name);

		if (found && !strcmp(found, name) && symbols.v[i].st_shndx)
			return symbols.v[i].st_value;
	}
	return 0;
}

uint64_t attach_agent_function(const struct attach_subject *s, const char *name)
{
	for (size_t i = 0; i < s->nr_maps; i++) {
		const struct record_map *m = &s->maps[i], *text;
		uint64_t value;
		struct pb_elf e;
		int fd = !m->offset && attach_is_agent(m) ? attach_mapped_open(s, m, &e) : -1;

		if (fd < 0)
			continue;
		value = find_symbol(&e, name);
		pb_elf_close(&e);
		close(fd);
		/* the agent's file begins at its address 0 */
		text = value ? attach_map_at(s, m->start + value) : NULL;
		if (text && text->exec)
			return m->start + value;
	}
	return 0;
}

bool attach_in_agent(const struct attach_subject *s, uint64_t addr)
{
	const struct record_map *m = attach_map_at(s, addr);

	return m && attach_is_agent(m);
}
