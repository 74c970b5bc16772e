/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finds libc and the loader in a process (libc_map.h). Symbols come from the file that is mapped
 * (mapped_file.h). Instructions are searched in memory, because memory is what the process
 * executes. The file and the memory may be hostile: every range is checked, and the address of
 * every function must be in libc's executable mappings.
 */
#include "attach/libc_map.h"
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>
#include "attach/agent_map.h"
#include "attach/mapped_file.h"
#include "base/base.h"
#include "module/elf/elf_file.h"
#include "recorder/loaded.h"

#define TEXT_MAX	(64u << 20)	/* libc's text has 1.5 MB */
#define PIECE		(16u << 10)
#define GETPPID_SIZE	16

#define GETPPID		0xb8, 0x6e, 0, 0, 0, 0x0f, 0x05, 0xc3
#define POP_RDI		0x5f, 0xc3
#define POP_RSP		0x5c, 0xc3

static const uint8_t getppid_code[] = { GETPPID };
static const uint8_t pop_rdi_code[] = { POP_RDI };
static const uint8_t pop_rsp_code[] = { POP_RSP };
static const uint8_t agent_code[] = { GETPPID, POP_RDI, POP_RSP }; /* arch/x86_64/injected.S */
static const uint8_t restore_code[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };

/* --- mappings ------------------------------------------------------------- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_libc(const char *path)
{
	const char *name = base_name(path);
	size_t len = strlen("libc.so.6");

	if (path[0] != '/')
		return false;
	if (!strncmp(name, "libc.so.6", len))
		return !name[len] || !strcmp(name + len, ATTACH_DELETED);
	/* before 2.34 the file was called libc-VERSION.so */
	return !strncmp(name, "libc-2.", 7);
}

static bool same_file(const struct record_map *a, const struct record_map *b)
{
	return a->ino == b->ino && a->major == b->major && a->minor == b->minor;
}

/* Returns the first mapping of libc's image. The loader's list of modules shows which mapping this
 * is. (The program itself may have mapped the file, too, to read it, and dlmopen() may have loaded
 * another libc.) If the list doesn't lead to such a mapping, the image is the one that has an
 * executable mapping. */
static const struct record_map *find_libc(const struct attach_subject *s)
{
	const struct record_map *m, *first = NULL;
	uint64_t base;

	if (record_loaded_bias(s->pid, is_libc, &base) && (m = attach_map_at(s, base)) &&
	    m->start == base && !m->offset && is_libc(m->path))
		return m;
	for (m = s->maps; m < s->maps + s->nr_maps; m++) {
		if (!is_libc(m->path))
			continue;
		if (!m->offset)
			first = m;
		if (m->exec && first && same_file(m, first))
			return first;
	}
	return NULL;
}

static const struct record_map *find_vdso(const struct attach_subject *s)
{
	for (size_t i = 0; i < s->nr_maps; i++)
		if (!strcmp(s->maps[i].path, "[vdso]"))
			return &s->maps[i];
	return NULL;
}

/* musl has one file for its loader and its libc. */
static bool is_musl(const struct record_map *loader)
{
	const char *name = base_name(loader->path);

	return !strncmp(name, "ld-musl-", 8) || !strncmp(name, "libc.musl-", 10) ||
	       !strcmp(name, "libc.so");
}

/* Returns the range of the executable mappings that belong to the same file as `first`. Usually
 * there is one such mapping. But while the agent of a forked child restores text by mprotect(),
 * some pages have a mapping of their own. */
static struct attach_range text_of(const struct attach_subject *s, const struct record_map *first)
{
	struct attach_range text = { 0 };

	for (size_t i = 0; first && i < s->nr_maps; i++) {
		const struct record_map *m = &s->maps[i];

		if (!m->exec || m->start < first->start || !same_file(m, first))
			continue;
		if (!text.end)
			text.start = m->start;
		else if (m->start != text.end)
			break;
		text.end = m->end;
	}
	return text;
}

/* Stores the loader's address, which the kernel passes to each program in the auxiliary vector; 0:
 * the program has no loader. Returns false if there is no vector yet, because an exec isn't
 * complete. */
static bool loader_base(const struct attach_subject *s, uint64_t *base)
{
	uint64_t aux[128];
	ssize_t n = attach_proc_read(s, "auxv", (char *)aux, sizeof(aux));

	for (ssize_t i = 0; n > 0 && i + 1 < n / (ssize_t)sizeof(aux[0]); i += 2)
		if (aux[i] == AT_BASE) {
			*base = aux[i + 1];
			return true;
		}
	return false;
}

/* --- the file ------------------------------------------------------------- */

static int open_libc(struct attach_subject *s, const struct record_map *m, struct pb_elf *e)
{
	int fd = attach_mapped_open(s, m, e);

	if (fd >= 0)
		return fd;
	if (strstr(m->path, ATTACH_DELETED) || fd == -ESTALE || fd == -ENOENT)
		return attach_say(s, ESTALE, "runs with a libc that has been replaced on disk "
				  "since it started; restart it, or attach as root");
	return attach_say(s, -fd, "has a libc that can't be read (%s): %s", strerror(-fd),
			  m->path);
}

/* --- functions ------------------------------------------------------------ */

/* Returns 0, or -errno with the user's line. */
static int find_functions(struct attach_subject *s, struct attach_libc *l, struct pb_elf *e,
			  uint64_t base)
{
	uint64_t size = 0;
	const struct attach_wanted w[] = {
		{ "pthread_create", &l->pthread_create },
		{ "pthread_detach", &l->pthread_detach },
		{ "dlopen", &l->dlopen },
		{ "dlsym", &l->dlsym },
		{ "dlerror", &l->dlerror },
		{ "getppid", &l->start },
		{ "__libc_start_main", &l->start_main.start, &size },
	};

	attach_find_functions(e, base, &l->text, w, pb_array_size(w));
	l->start_main.end = l->start_main.start + size;
	if (attach_locks_find(&l->locks, s, e, base, &l->text))
		return attach_say(s, ENOMEM, "can't be attached to: %s", strerror(ENOMEM));
	if (!l->dlopen || !l->pthread_create)
		return attach_say(s, ENOTSUP, "uses a glibc older than 2.34, in which libc.so.6 "
				  "has no dlopen; start it with `patchbay record -- PROG' instead");
	if (l->locks.thread_sanitizer)
		return attach_say(s, ENOTSUP, "has ThreadSanitizer, which would crash in a thread "
				  "that it has not created itself; start the program with "
				  "`patchbay record -- PROG' instead");
	for (size_t i = 0; i < pb_array_size(w); i++)
		if (!*w[i].addr)
			return attach_say(s, ENOTSUP, "has a libc without %s; start the program "
					  "with `patchbay record -- PROG' instead", w[i].name);
	return 0;
}

/* --- instructions --------------------------------------------------------- */

/* Searches the range `text` for the bytes of `code`. Reads it in pieces, because the wanted bytes
 * are usually near the start of libc's text, so that most of the text needn't be read. Returns 0 if
 * the code isn't there. */
static uint64_t find_code(const struct attach_subject *s, const struct attach_range *text,
			  const uint8_t *code, size_t len)
{
	uint8_t piece[PIECE];

	for (uint64_t at = text->start; at < text->end; at += sizeof(piece) - (len - 1)) {
		uint64_t left = text->end - at;
		size_t size = left < sizeof(piece) ? left : sizeof(piece);
		const uint8_t *found = attach_mem_read(s, at, piece, size) ? NULL :
				       memmem(piece, size, code, len);

		if (found)
			return at + (uint64_t)(found - piece);
	}
	return 0;
}

/* Finds the instructions in the agent, if the process has it: the process was attached before, or
 * is a forked child of an attached process. */
static bool find_in_agent(const struct attach_subject *s, struct attach_libc *l)
{
	uint64_t at = 0;

	for (size_t i = 0; i < s->nr_maps && !at; i++) {
		const struct record_map *m = &s->maps[i];
		struct attach_range text = { m->start, m->end };

		if (m->exec && m->end - m->start <= TEXT_MAX && attach_is_agent(m))
			at = find_code(s, &text, agent_code, sizeof(agent_code));
	}
	if (!at)
		return false;
	l->start = at;
	l->pop_rdi = at + sizeof(getppid_code);
	l->pop_rsp = l->pop_rdi + sizeof(pop_rdi_code);
	l->call = l->pop_rdi - 3;
	return true;
}

static void find_in_libc(const struct attach_subject *s, struct attach_libc *l)
{
	/* an endbr64 may come before getppid's code */
	struct attach_range getppid = { l->start, l->start + GETPPID_SIZE };
	uint64_t at = getppid.end > l->text.end ? 0 :
		      find_code(s, &getppid, getppid_code, sizeof(getppid_code));

	if (!at)
		return;
	l->call = at + sizeof(getppid_code) - 3;
	l->pop_rdi = find_code(s, &l->text, pop_rdi_code, sizeof(pop_rdi_code));
	l->pop_rsp = find_code(s, &l->text, pop_rsp_code, sizeof(pop_rsp_code));
}

/* If the process has the agent, libc's text may be patched: a forked child keeps the jumps. A jump
 * may have overwritten the instructions. Or the bytes of a jump may look like them, but the agent
 * removes the jump while the injector works. So the agent's text is searched first, which is never
 * patched. The restorer is never patched either. */
static int find_instructions(struct attach_subject *s, struct attach_libc *l)
{
	if (l->text.end - l->text.start <= TEXT_MAX) {
		if (!find_in_agent(s, l))
			find_in_libc(s, l);
		l->restore = find_code(s, &l->text, restore_code, sizeof(restore_code));
	}
	return l->pop_rdi && l->pop_rsp && l->restore ? 0 :
	       attach_say(s, ENOTSUP, "has a libc without instructions that are needed; start the "
			  "program with `patchbay record -- PROG' instead");
}

int attach_libc_find(struct attach_subject *s, struct attach_libc *l)
{
	const struct record_map *libc = find_libc(s), *vdso = find_vdso(s);
	uint64_t base = 0;
	bool begun = loader_base(s, &base);
	const struct record_map *loader = base ? attach_map_at(s, base) : NULL;
	struct pb_elf e;

	memset(l, 0, sizeof(*l));
	if (loader && is_musl(loader))
		return attach_say(s, ENOTSUP, "uses musl, but only programs with glibc can be "
				  "traced; link it with glibc");
	if (!libc && begun && !base)
		return attach_say(s, ENOTSUP, "is linked statically, so it can't load the agent; "
				  "link it without -static");
	if (!libc)
		return attach_say(s, EAGAIN, "has not loaded glibc, which the agent needs, perhaps "
				  "because it has just started; try again");
	l->text = text_of(s, libc);
	l->loader = text_of(s, loader);
	if (vdso)
		l->vdso = (struct attach_range) { vdso->start, vdso->end };
	/* the loader may still be mapping libc, so the caller may try again (EAGAIN) */
	if (!l->text.end || !l->loader.end)
		return attach_say(s, EAGAIN, "has an unknown layout of libc and loader; start the "
				  "program with `patchbay record -- PROG' instead");
	int fd = open_libc(s, libc, &e);

	if (fd < 0)
		return fd;
	int err = find_functions(s, l, &e, libc->start);

	pb_elf_close(&e);
	close(fd);
	return err ? err : find_instructions(s, l);
}

void attach_libc_free(struct attach_libc *l)
{
	attach_locks_free(&l->locks);
}
