/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes forks during dlopen() harmless (loading.h). The new thread stops after each of its system
 * calls. After mmap() of the part of the agent that has the dynamic section, the injector clears
 * DF_1_INITFIRST there. Only a preloaded agent needs this flag. The loader reads it when all parts
 * are mapped, and then stores in a variable that the agent is the library whose constructor runs
 * first. The next dlopen() runs this constructor, whichever library it loads. In a child that was
 * forked before the agent's relocation, an assertion of the loader would then fail.
 */
#include "attach/loading.h"
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <syscall.h>
#include <unistd.h>
#include "base/sys.h"
#include "module/elf/elf_file.h"

/* --- before dlopen() ------------------------------------------------------ */

static uint64_t find_flags(const struct pb_elf *e)
{
	for (uint64_t i = 0; i < e->nr_dyn && e->dyn[i].d_tag != DT_NULL; i++)
		if (e->dyn[i].d_tag == DT_FLAGS_1)
			return (uint64_t)((const uint8_t *)&e->dyn[i] - e->base);
	return 0;
}

static bool is_of(const struct record_map *m, const struct stat *st)
{
	return m->ino == st->st_ino && makedev(m->major, m->minor) == st->st_dev;
}

/* Whether the process has the agent, but without relocations. After the relocations, the loader
 * write-protects the part of the memory that PT_GNU_RELRO describes. */
static bool is_half_loaded(const struct attach_subject *s, const struct pb_elf *e,
			   const struct stat *st)
{
	uint64_t base = 0, relro = 0;
	bool text = false;

	for (size_t i = 0; i < s->nr_maps && !text; i++) {
		if (!is_of(&s->maps[i], st))
			continue;
		if (!s->maps[i].offset)
			base = s->maps[i].start;
		text = base && s->maps[i].exec;
	}
	for (unsigned i = 0; i < e->nr_ph; i++)
		if (e->ph[i].p_type == PT_GNU_RELRO)
			relro = e->ph[i].p_vaddr;
	const struct record_map *m = text && relro ? attach_map_at(s, base + relro) : NULL;

	return m && is_of(m, st) && m->write;
}

int attach_loading_begin(struct attach_loading *g, struct attach_subject *s)
{
	struct pb_elf e;
	struct stat st;
	const char *why;
	bool half = false;
	int fd = open(s->agent, O_RDONLY | O_CLOEXEC);

	*g = (struct attach_loading) { .s = s };
	if (fd >= 0 && !fstat(fd, &st) && !pb_elf_open(&e, fd, false, &why)) {
		g->flags = find_flags(&e);
		half = is_half_loaded(s, &e, &st);
		pb_elf_close(&e);
	}
	if (fd >= 0)
		close(fd);
	return half ? attach_say(s, ENOTSUP, "was forked while its parent was loading the agent, "
				 "so it has half of the agent; restart it") : 0;
}

/* --- in dlopen() ---------------------------------------------------------- */

static void clear_flag(const struct attach_loading *g, const struct user_regs_struct *r)
{
	uint64_t at = r->rax + (g->flags - r->r9);
	Elf64_Dyn d;

	if (!g->flags || !(r->rdx & PROT_WRITE) || g->flags < r->r9 ||
	    g->flags - r->r9 + sizeof(d) > r->rsi)
		return;
	if (attach_mem_read(g->s, at, &d, sizeof(d)) || d.d_tag != DT_FLAGS_1)
		return;
	d.d_un.d_val &= ~(uint64_t)DF_1_INITFIRST;
	attach_mem_write(g->s, at, &d, sizeof(d));
}

void attach_loading_called(void *loading, const struct user_regs_struct *regs)
{
	const struct attach_loading *g = loading;

	if (regs->orig_rax == SYS_mmap && !(regs->r10 & MAP_ANONYMOUS) &&
	    !pb_sys_failed((int64_t)regs->rax))
		clear_flag(g, regs);
}
