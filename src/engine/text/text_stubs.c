/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Maps the stubs of a module, and writes those that aren't ready for use. The recorder has made a
 * file with the stubs (abi/stubs.h). The file is mapped private. The sites lie right before it:
 *
 *   sites, returns   headers   code   unwind table, symbols
 *   (front)          the file
 *
 * If the file is mapped at the address for which its code was made, stubs without absolute
 * addresses are ready for use. If the module also has no load bias, all its stubs are ready. If a
 * stub isn't ready, the agent writes the whole stub when its site is first patched. Before that,
 * the agent checks that the bytes to displace are those of the module's own file. The stub becomes
 * executable when the batch seals it.
 *
 * The kernel may forbid that memory becomes executable that was writable before (PR_SET_MDWE, or a
 * rule of SELinux). Then the file is executable from the start, and each stub is written like the
 * program's text. If the process gets such a rule only after the stubs were mapped, they can't be
 * sealed any more, and the functions of the module are refused.
 */
#include <asm/errno.h>
#include <elf.h>
#include <sys/mman.h>
#include "abi/stubs.h"
#include "arch/arch.h"
#include "base/base.h"
#include "base/pages.h"
#include "base/sys.h"
#include "engine/text/text_priv.h"

#define PAGE	4096ul
#define LOWEST		0x10000ul
#define SMALL_STEP	0x200000ul
#define HEAP_ROOM	(1ul << 30)	/* stubs above a module leave so much room for a heap */

bool (*pb_text_ask)(struct pb_module *m);

/* ---- where ---------------------------------------------------------------- */

struct region {
	uint64_t front, file;	/* sizes in bytes, multiples of a page */
	int fd;
	uint64_t size;		/* size of the file, not rounded */
	bool copied;
};

static bool region_reaches(uint64_t at, size_t size, uint64_t lo, uint64_t hi)
{
	uint64_t end = at + size;

	return (end > lo ? end - lo : hi - at) < PB_STUBS_REACH &&
	       (hi > at ? hi - at : end - lo) < PB_STUBS_REACH;
}

static bool map_exactly(uint64_t at, uint64_t size, int prot, int flags, int fd)
{
	long p;

	flags |= MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
	p = pb_pages_map(at, size, prot, flags, fd, 0);

	if ((uint64_t)p != at && !pb_sys_failed(p))
		pb_pages_unmap((uint64_t)p, size);	/* the kernel doesn't know
							 * MAP_FIXED_NOREPLACE */
	return (uint64_t)p == at;
}

/* Maps a copy of the file. Called if files may not be mapped executable. Profilers find no unwind
 * table in a copy. */
static bool copy_file(const struct region *r, uint64_t at)
{
	if (!map_exactly(at, r->file, PROT_READ | PROT_WRITE, MAP_ANONYMOUS, -1))
		return false;
	for (uint64_t done = 0; done < r->size;) {
		long n = pb_sys(SYS_pread64, r->fd, at + done, r->size - done, done);

		if (n == -EINTR)
			continue;
		if (n <= 0) {
			pb_pages_unmap(at, r->file);
			return false;
		}
		done += (uint64_t)n;
	}
	return true;
}

/* Maps the file at `at`. The mapping is executable at first, only to find out whether an executable
 * mapping is allowed. open_code() then makes the code writable and not executable, until the batch
 * seals it. */
static bool map_region(struct region *r, uint64_t at)
{
	if (!map_exactly(at - r->front, r->front, PROT_READ | PROT_WRITE, MAP_ANONYMOUS, -1))
		return false;
	if (map_exactly(at, r->file, PROT_READ | PROT_EXEC, 0, r->fd))
		return true;
	r->copied = copy_file(r, at);
	if (r->copied)
		return true;
	pb_pages_unmap(at - r->front, r->front);
	return false;
}

/* Tries the addresses from `at` on, downwards, as long as they are at or above `least`. */
static uint64_t map_from(struct region *r, uint64_t at, uint64_t least, uint64_t step, uint64_t lo,
			 uint64_t hi)
{
	uint64_t size = r->front + r->file;

	for (int i = 0; i < 2000; i++, at -= step) {
		if (!region_reaches(at, size, lo, hi) || at < least)
			break;
		if (map_region(r, at + r->front))
			return at + r->front;
	}
	return 0;
}

/* Finds another address for the file of stubs if the address that the file was made for is taken
 * (abi/stubs.h). Searches below the module first. If the program has run for long, this memory may
 * be full of small mappings. Then the search goes on far above the module, because an executable's
 * heap is right above the executable. At last it goes below the module again, in small steps. For
 * a module below PB_STUBS_LOW, both the first and the last search are far above the module. */
static uint64_t map_near(struct region *r, uint64_t lo, uint64_t hi)
{
	bool up = lo < PB_STUBS_LOW;
	uint64_t size = r->front + r->file, step = pb_align_up(size, SMALL_STEP), at, found;
	uint64_t least = up ? hi : LOWEST, above = lo + PB_STUBS_REACH - size - PAGE;

	at = (up ? PB_STUBS_REACH - PB_STUBS_END - size : lo - size - PB_STUBS_GAP) & ~(PAGE - 1);
	found = map_from(r, at, least, step, lo, hi);
	if (!found && !up)
		found = map_from(r, above & ~(PAGE - 1), hi + HEAP_ROOM, step, lo, hi);
	return found ? found : map_from(r, at, least, SMALL_STEP, lo, hi);
}

/* Leaves the module's text out of core files. The kernel would put the whole text mapping into a
 * core file, because patching has written to it. Debuggers don't need it there, because they read
 * the module's file. The image's first page stays in core files, for the build ID, as that of any
 * other image. */
static void keep_text_from_cores(const struct pb_analysis *a, uint64_t bias)
{
	uint64_t image = (bias + a->image_start) & ~(PAGE - 1);
	const Elf64_Ehdr *e = (const void *)image;
	const Elf64_Phdr *ph = (const void *)(image + e->e_phoff);

	if (memcmp(e->e_ident, ELFMAG, SELFMAG) || e->e_phoff >= PAGE ||
	    e->e_phnum > (PAGE - e->e_phoff) / sizeof(*ph))
		return;
	for (int i = 0; i < e->e_phnum; i++) {
		uint64_t lo = (bias + ph[i].p_vaddr) & ~(PAGE - 1);
		uint64_t hi = pb_align_up(bias + ph[i].p_vaddr + ph[i].p_memsz, PAGE);

		if (ph[i].p_type != PT_LOAD || !(ph[i].p_flags & PF_X))
			continue;
		lo += lo == image ? PAGE : 0;
		if (lo < hi)
			pb_sys(SYS_madvise, lo, hi - lo, MADV_DONTDUMP);
	}
}

static void init_sites(struct pb_module *m)
{
	const struct pb_func *f = pb_analysis_funcs(m->analysis);

	for (uint32_t i = 0; i < m->analysis->nr_funcs; i++) {
		struct pb_site *s = &m->sites[i];

		s->id = m->first_site + i;
		if (f[i].refused != PB_REFUSED_NOT)
			s->flags = FTRACE_FL_REFUSED |
				   (uint64_t)f[i].refused << FTRACE_FL_REASON_SHIFT;
		else if (f[i].flags & PB_FUNC_GOES_ON)
			s->flags = FTRACE_FL_GOES_ON;
		if (m->analysis->flags & PB_AN_SMALL_STACKS)
			s->flags |= FTRACE_FL_SMALL;
	}
}

/* ---- where the stubs of exits lead -------------------------------------------- */

struct pb_returns pb_returns_now = { (uint64_t)pb_exit_ret_idle, (uint64_t)pb_exit_jump_idle };

static void set_words(struct pb_returns *r, uint64_t ret, uint64_t jump)
{
	__atomic_store_n(&r->ret, ret, __ATOMIC_RELEASE);
	__atomic_store_n(&r->jump, jump, __ATOMIC_RELEASE);
}

static void init_returns(struct pb_module *m)
{
	set_words(m->returns, pb_text_near(m, pb_returns_now.ret),
		  pb_text_near(m, pb_returns_now.jump));
}

void pb_text_returns(uint64_t ret, uint64_t jump)
{
	set_words(&pb_returns_now, ret, jump);
	for (struct pb_module *m = pb_modules; m < pb_modules + pb_nr_modules; m++)
		if (m->present && m->sites)
			init_returns(m);
}

/* ---- the file of stubs --------------------------------------------------------- */

static bool read_head(int fd, struct pb_stubs *head)
{
	return pb_sys(SYS_pread64, fd, head, sizeof(*head), PB_STUBS_AT) == (long)sizeof(*head);
}

static uint64_t exits_size(const struct pb_module *m)
{
	return m->analysis->nr_windows * sizeof(struct pb_exit_site);
}

static bool map_exits(struct pb_module *m)
{
	long p;

	if (!m->analysis->nr_windows)
		return true;
	p = pb_pages_map(0, exits_size(m), PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	m->exits = pb_sys_failed(p) ? NULL : (struct pb_exit_site *)p;
	return m->exits;
}

static long protect_code(const struct pb_module *m, int prot)
{
	return pb_sys(SYS_mprotect, m->stubs, m->stubs_size, prot);
}

/* Maps the code from the file again, executable. */
static bool map_sealed(const struct pb_module *m, const struct region *r, uint64_t offset)
{
	uint64_t at = (uint64_t)m->stubs, size = m->stubs_size;
	long p = pb_sys(SYS_mmap, at, size, PROT_READ | PROT_EXEC,
			MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED, r->fd, offset);

	if (pb_sys_failed(p))
		return false;
	if (pb_pages_future)
		pb_sys(SYS_munlock, at, size);
	pb_sys(SYS_madvise, at, size, MADV_DONTDUMP);
	return true;
}

/* Makes the code writable, and fills its head. No thread runs the code yet. Its mapping is "-w-p",
 * so programs that look for data in the list of mappings skip it. Then the code becomes executable
 * once, only to find out whether it can be sealed later. SELinux has a rule for mappings of files
 * that were written, so a page is written before. */
static const char *open_code(struct pb_module *m, const struct region *r, uint64_t offset)
{
	volatile uint8_t *first = m->stubs;

	if (protect_code(m, PROT_WRITE))
		return "no memory for its stubs";
	m->near = pb_near_make(m->stubs);
	*first = *first;
	if (!protect_code(m, PROT_READ | PROT_EXEC))
		return protect_code(m, PROT_WRITE) ? "no memory for its stubs" : NULL;
	m->near = false;
	m->stubs_sealed = !r->copied && map_sealed(m, r, offset);
	return m->stubs_sealed ? NULL : "its stubs can't be executable: the kernel forbids the "
					"process to make memory executable (PR_SET_MDWE, SELinux)";
}

const char *pb_stubs_map(struct pb_module *m, int fd, uint64_t size)
{
	const struct pb_analysis *a = m->analysis;
	struct region r = { .fd = fd, .size = size, .file = pb_align_up(size, PAGE) };
	uint64_t at, lo = m->bias + a->image_start, hi = m->bias + a->image_end;
	struct pb_stubs head;
	const char *why;

	if (!read_head(fd, &head) || !pb_stubs_fit(&head, size) || !pb_stubs_are_of(&head, a) ||
	    head.front < a->nr_funcs * sizeof(struct pb_site) + sizeof(struct pb_returns))
		return "the file of its stubs is damaged";
	r.front = head.front;
	at = m->bias + head.place;
	m->stubs_placed = region_reaches(at - r.front, r.front + r.file, lo, hi) &&
			  map_region(&r, at);
	if (!m->stubs_placed)
		at = map_near(&r, lo, hi);
	if (!at)
		return "no memory for stubs within reach of it";
	m->stubs = (uint8_t *)(at + head.text);
	m->stubs_size = head.text_size;
	why = open_code(m, &r, head.text);
	if (!why && !map_exits(m))
		why = "no memory for its stubs";
	if (why) {
		m->stubs = NULL;
		m->stubs_size = 0;
		m->near = m->stubs_sealed = false;
		pb_pages_unmap(at - r.front, r.front + r.file);
		return why;
	}
	/* Core files need the bytes that a debugger can't read from a file. These are the headers,
	 * which text_jit.c changes in memory; or, if the file was copied, the whole copy. */
	pb_pages_dump(at, r.copied ? size : PB_STUBS_PAGE);
	m->region = at - r.front;
	m->region_size = r.front + r.file;
	m->stub_file = (const void *)(at + PB_STUBS_AT);
	m->returns = (struct pb_returns *)(at - head.front + a->nr_funcs * sizeof(struct pb_site));
	init_returns(m);
	m->sites = (struct pb_site *)(at - head.front);
	init_sites(m);
	keep_text_from_cores(a, m->bias);
	return NULL;
}

void pb_stubs_unmap(const struct pb_module *m)
{
	if (!m->sites)
		return;
	pb_pages_unmap(m->region, m->region_size);
	if (m->exits)
		pb_pages_unmap((uint64_t)m->exits, exits_size(m));
}

/* ---- making a stub ---------------------------------------------------------- */

static bool has_absolute(const struct pb_recipe *r)
{
	for (unsigned i = 0; r && i < r->nr_fixups; i++)
		if (pb_recipe_fixups(r)[i].kind != PB_FIX_REL32)
			return true;
	return false;
}

static bool is_ready(const struct pb_module *m, const struct pb_place *p)
{
	return m->stubs_placed &&
	       (!m->bias || (!has_absolute(p->recipe) && !has_absolute(p->second)));
}

/* Writes a stub. Its pages may already be executable, but no thread has run the stub yet. */
static bool put(const struct pb_module *m, uint8_t *at, const uint8_t *code, size_t size)
{
	if (m->stubs_sealed)
		return !pb_text_write((uint64_t)at, code, size);
	memcpy(at, code, size);
	return true;
}

uint32_t pb_stub_of_site(struct pb_module *m, const struct pb_site *s, const struct pb_place *p)
{
	uint32_t off = pb_stubs_funcs(m->stub_file)[s - m->sites];
	uint8_t *at = m->stubs + off, code[PB_STUB_MAX];

	if (off % 16 || off < PB_STUBS_HEAD || off + pb_stub_size(p) > m->stubs_size)
		return 0;
	if (is_ready(m, p))
		return pb_stub_is(at, s) ? off : 0;
	if (pb_stub_emit(code, (uint64_t)at, s, p, m->returns, m->bias) ||
	    !put(m, at, code, PB_STUB_COPY + pb_body_size(p)))
		return 0;
	return off;
}

uint32_t pb_stub_of_exits(struct pb_module *m, uint32_t window, const struct pb_place *p)
{
	uint32_t off = pb_stubs_windows(m->stub_file)[window];
	uint8_t *at = m->stubs + off, code[PB_STUB_MAX];
	size_t size = pb_body_size(p);

	if (off < PB_STUBS_HEAD || off + size > m->stubs_size)
		return 0;
	if (is_ready(m, p))
		return *at != PB_STUBS_BAD ? off : 0;
	if (pb_body_emit(code, (uint64_t)at, p, m->returns, m->bias) || !put(m, at, code, size))
		return 0;
	return off;
}

/* Refuses all functions and exits of a module whose stubs can't be sealed. No jump leads to these
 * stubs yet. From now on, the module counts as one without stubs. */
static void refuse_all(struct pb_module *m)
{
	const uint64_t had = FTRACE_FL_ENABLED | FTRACE_FL_SLOT;

	for (uint32_t i = 0; i < m->analysis->nr_funcs; i++) {
		struct pb_site *s = &m->sites[i];

		s->stub = 0;
		if (!(s->flags & FTRACE_FL_REFUSED))
			s->flags = (s->flags & ~had) | FTRACE_FL_REFUSED |
				   (uint64_t)PB_REFUSED_NO_NEW_CODE << FTRACE_FL_REASON_SHIFT;
	}
	for (uint32_t i = 0; m->exits && i < m->analysis->nr_windows; i++) {
		m->exits[i].flags = PB_EXIT_FL_REFUSED;
		__atomic_store_n(&m->exits[i].stub, 0, __ATOMIC_RELEASE);
	}
	pb_shared_remove(m);
	m->stubs_used = false;
}

int pb_stubs_seal(void)
{
	long err, refused = 0;

	for (uint32_t i = 0; i < pb_nr_modules; i++) {
		struct pb_module *m = &pb_modules[i];

		if (!m->present || m->stubs_sealed || !m->stubs_used)
			continue;
		err = protect_code(m, PROT_READ | PROT_EXEC);
		m->stubs_sealed = !err;
		if (err == -EACCES || err == -EPERM) {
			refuse_all(m);
			refused = -ENOEXEC;
		} else if (err) {
			return (int)err;
		}
	}
	return (int)refused;
}
