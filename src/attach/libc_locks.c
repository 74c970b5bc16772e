/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finds out whether a thread that is in some code may hold a lock that pthread_create() takes
 * (libc_locks.h).
 *
 * For a function of libc, the function's name decides. libc exports only some of its functions. The
 * others have no names here, so they count as unsure.
 *
 * A program or a library may define its own malloc(), which pthread_create() then calls. A thread
 * that was interrupted inside this malloc() may hold a lock of it, or may be in the middle of a
 * change of the thread's own lists. So such a thread must not be borrowed. libc's own reference to
 * malloc() leads to this malloc(). Context: the injector's thread.
 */
#include "attach/libc_locks.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "attach/mapped_file.h"
#include "base/base.h"

#define MAX_FUNCTIONS	(64u << 10)	/* glibc exports 3,000 */

/* Functions that take a lock of malloc, of the list of stacks or of the loader's TLS data, and may
 * wait while they hold it. */
static const char *const locking[] = {
	"setuid", "setgid", "seteuid", "setegid", "setreuid", "setregid", "setresuid", "setresgid",
	"setgroups", "fork", "malloc", "calloc", "realloc", "free", "memalign", "aligned_alloc",
	"posix_memalign", "reallocarray", "valloc", "pvalloc", "malloc_trim", "malloc_stats",
	"malloc_info", "mallinfo", "mallinfo2", "mallopt", "pthread_create", "dl_iterate_phdr",
};

/* Beginnings of names of functions that may hold such a lock at other times, or that must not be
 * interrupted by pthread_create() for another reason. */
static const char *const unsure[] = {
	"pthread_", "__pthread_", "thrd_", "dl", "_dl_", "__libc_", "__cxa_", "exit", "on_exit",
	"quick_exit", "at_quick_exit", "abort", "clone", "__clone", "vfork", "__vfork", "_Fork",
};

static enum attach_function_kind kind_of(const char *name)
{
	for (size_t i = 0; i < pb_array_size(locking); i++)
		if (!strcmp(name, locking[i]))
			return ATTACH_LOCKING;
	for (size_t i = 0; i < pb_array_size(unsure); i++)
		if (!strncmp(name, unsure[i], strlen(unsure[i])))
			return ATTACH_UNSURE;
	return ATTACH_HARMLESS;
}

static int by_start(const void *a, const void *b)
{
	const struct attach_function *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* A function may have several names, for example malloc and __libc_malloc. The worst of them
 * counts. If a function's symbol says that it reaches into the next function, it ends where the
 * next one begins. */
static void merge(struct attach_locks *l)
{
	struct attach_function *f = l->functions;
	size_t n = 0;

	for (size_t i = 0; i < l->nr_functions; i++) {
		if (n && f[n - 1].start == f[i].start) {
			if (f[i].kind > f[n - 1].kind)
				f[n - 1].kind = f[i].kind;
			if (f[i].end > f[n - 1].end)
				f[n - 1].end = f[i].end;
			continue;
		}
		if (n && f[n - 1].end > f[i].start)
			f[n - 1].end = f[i].start;
		f[n++] = f[i];
	}
	l->nr_functions = n;
}

static int list_functions(struct attach_locks *l, struct pb_elf *e, uint64_t base,
			  const struct attach_range *text)
{
	struct pb_elf_symbols symbols;

	if (!pb_elf_symbols(e, SHT_DYNSYM, &symbols) || symbols.n > MAX_FUNCTIONS)
		return 0;
	l->functions = malloc((size_t)(symbols.n + 1) * sizeof(*l->functions));
	if (!l->functions)
		return -ENOMEM;
	for (uint64_t i = 0; i < symbols.n; i++) {
		const Elf64_Sym *sym = &symbols.v[i];
		const char *name = pb_elf_string(&symbols.strings, sym->st_name);
		uint64_t start = base + sym->st_value;

		if (name && ELF64_ST_TYPE(sym->st_info) == STT_FUNC && sym->st_shndx &&
		    attach_in(text, start) && sym->st_size < text->end - start)
			l->functions[l->nr_functions++] = (struct attach_function) {
				start, start + sym->st_size, kind_of(name),
			};
	}
	qsort(l->functions, l->nr_functions, sizeof(*l->functions), by_start);
	merge(l);
	return 0;
}

enum attach_function_kind attach_locks_kind(const struct attach_locks *l, uint64_t addr)
{
	size_t at = pb_bisect(i, 0, l->nr_functions, l->functions[i].end <= addr);

	return at < l->nr_functions && l->functions[at].start <= addr ? l->functions[at].kind :
	       ATTACH_UNSURE;
}

/* --- the allocator --------------------------------------------------------- */

static bool is_malloc(const struct pb_elf_symbols *symbols, const Elf64_Rela *r)
{
	uint64_t i = ELF64_R_SYM(r->r_info);
	unsigned type = ELF64_R_TYPE(r->r_info);
	const char *name = i < symbols->n ? pb_elf_string(&symbols->strings, symbols->v[i].st_name)
					  : NULL;

	return (type == R_X86_64_GLOB_DAT || type == R_X86_64_JUMP_SLOT) && name &&
	       !strcmp(name, "malloc");
}

/* Searches one of libc's tables of relocations. Returns the link-time address of the word that the
 * loader has set to the address of malloc(), or 0. */
static uint64_t word_of_malloc(struct pb_elf *e, const struct pb_elf_symbols *symbols,
			       int64_t table, int64_t size)
{
	uint64_t addr, len;
	const Elf64_Rela *r;

	if (!pb_elf_dynamic(e, table, &addr) || !pb_elf_dynamic(e, size, &len))
		return 0;
	r = pb_elf_at(e, addr, len);
	if (!r || (uintptr_t)r % _Alignof(Elf64_Rela))
		return 0;
	for (uint64_t i = 0; i < len / sizeof(*r); i++)
		if (is_malloc(symbols, &r[i]))
			return r[i].r_offset;
	return 0;
}

/* Whether the file of the mapping defines a function. */
static bool defines(const struct attach_subject *s, const struct record_map *m,
		    const char *function)
{
	const struct record_map *first = m;
	struct pb_elf_symbols symbols;
	struct pb_elf e;
	bool found = false;
	int fd;

	while (first > s->maps && first->offset && first[-1].ino == m->ino)
		first--;
	fd = attach_mapped_open(s, first, &e);
	if (fd < 0)
		return false;
	if (pb_elf_symbols(&e, SHT_DYNSYM, &symbols))
		for (uint64_t i = 0; i < symbols.n && !found; i++) {
			const char *name = pb_elf_string(&symbols.strings, symbols.v[i].st_name);

			found = symbols.v[i].st_shndx && name && !strcmp(name, function);
		}
	pb_elf_close(&e);
	close(fd);
	return found;
}

static bool is_exe(const struct attach_subject *s, const struct record_map *m)
{
	char path[ATTACH_PATH];

	return !attach_proc_link(s, "exe", path, sizeof(path)) && !strcmp(path, m->path);
}

static void find_allocator(struct attach_locks *l, const struct attach_subject *s, struct pb_elf *e,
			   uint64_t base, const struct attach_range *text)
{
	const struct record_map *m = NULL;
	struct pb_elf_symbols symbols;
	uint64_t word, address;

	if (!pb_elf_symbols(e, SHT_DYNSYM, &symbols))
		return;
	word = word_of_malloc(e, &symbols, DT_RELA, DT_RELASZ);
	if (!word)
		word = word_of_malloc(e, &symbols, DT_JMPREL, DT_PLTRELSZ);
	/* A word that the loader hasn't set yet leads back into libc. */
	if (word && !attach_mem_read(s, base + word, &address, sizeof(address)) &&
	    !attach_in(text, address))
		m = attach_map_at(s, address);
	if (!m || !m->exec)
		return;
	l->exe_allocates = is_exe(s, m);
	l->thread_sanitizer = defines(s, m, "__tsan_init");
	if (!l->exe_allocates)
		l->allocator = (struct attach_range) { m->start, m->end };
}

int attach_locks_find(struct attach_locks *l, const struct attach_subject *s, struct pb_elf *e,
		      uint64_t base, const struct attach_range *text)
{
	find_allocator(l, s, e, base, text);
	return list_functions(l, e, base, text);
}

void attach_locks_free(struct attach_locks *l)
{
	free(l->functions);
	l->functions = NULL;
	l->nr_functions = 0;
}
