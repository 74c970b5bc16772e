/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <elf.h>
#include <sys/mman.h>
#include "engine/text_priv.h"
#include "abi/analysis_check.h"
#include "arch/x86_64/stub.h"
#include "base/base.h"
#include "base/pages.h"
#include "base/sys.h"

#define PAGE		4096ul
#define REACH		0x7ff00000ul	/* of a rel32, with room for the ends */
#define LOW_IMAGE	0x10000000ul	/* below: look for memory above the image */

struct pb_module pb_modules[PB_MAX_MODULES];
uint32_t pb_nr_modules;

const uint32_t *pb_text_pid;
static uint32_t lock;

/* The holder's PID: one that is not ours was copied by a fork. No system call where
 * the PID is known: a filter may forbid it, and dlopen comes here. */
void pb_text_lock(void)
{
	uint32_t known = pb_text_pid ? *pb_text_pid : 0, free = 0;
	uint32_t me = known ? known : (uint32_t)pb_sys(SYS_getpid);

	while (!__atomic_compare_exchange_n(&lock, &free, me, false, __ATOMIC_ACQUIRE,
					    __ATOMIC_RELAXED)) {
		if (free == me)
			free = 0;	/* held: wait; else take it over */
		pb_sys(SYS_sched_yield);
	}
}

void pb_text_unlock(void)
{
	__atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

static bool region_reaches(uint64_t at, size_t size, uint64_t lo, uint64_t hi)
{
	uint64_t end = at + size;

	return (end > lo ? end - lo : hi - at) < REACH && (hi > at ? hi - at : end - lo) < REACH;
}

/* Memory that text in [lo, hi) reaches, and that reaches it. Below the image,
 * where only the dynamic loader puts things; above it when the image lies so
 * low that there is no room (not position-independent), at the far end, as
 * its heap grows there. */
static uint8_t *map_near(uint64_t lo, uint64_t hi, size_t size)
{
	bool up = lo < LOW_IMAGE;
	uint64_t step = pb_align_up(size, 0x200000), at;

	at = up ? (REACH - 0x1000000 - size) & ~(PAGE - 1) : (lo - size - 0x10000) & ~(PAGE - 1);
	for (int i = 0; i < 2000; i++, at -= step) {
		long p;

		if (!region_reaches(at, size, lo, hi) || at < 0x10000 || (up && at < hi))
			break;
		p = pb_pages_map(at, size, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
		if ((uint64_t)p == at)
			return (uint8_t *)at;
		if (!pb_sys_failed(p))
			pb_pages_unmap((uint64_t)p, size);	/* a kernel without NOREPLACE */
	}
	return NULL;
}

/* Pages of text that were written would stand in core files, with all of their
 * mapping: debuggers read the file. The first page of an image stays: core files have
 * it of all images, for the build ID. */
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

static bool image_matches(const struct pb_analysis *a, uint64_t bias)
{
	if (!a->note_vaddr)
		return true;	/* each window's bytes are compared all the same */
	return !memcmp((const void *)(bias + a->note_vaddr), a->build_id, a->build_id_len);
}

static size_t stubs_needed(const struct pb_analysis *a)
{
	const struct pb_func *f = pb_analysis_funcs(a);
	size_t size = PAGE + pb_returns_stubs(a);

	for (uint32_t i = 0; i < a->nr_funcs; i++) {
		struct pb_place p;

		if (f[i].refused != PB_REFUSED_NOT)
			continue;
		p = pb_func_place(a, &f[i]);
		size += pb_stub_size(&p);
	}
	return pb_align_up(size, PAGE);
}

static void init_sites(struct pb_module *m)
{
	const struct pb_func *f = pb_analysis_funcs(m->analysis);

	for (uint32_t i = 0; i < m->analysis->nr_funcs; i++) {
		struct pb_site *s = &m->sites[i];

		s->id = m->first_site + i;
		if (f[i].refused != PB_REFUSED_NOT)
			s->flags = FTRACE_FL_REFUSED | (uint64_t)f[i].refused << FTRACE_FL_REASON_SHIFT;
		else if (f[i].flags & PB_FUNC_GOES_ON)
			s->flags = FTRACE_FL_GOES_ON;
	}
}

struct pb_module *pb_text_add(const void *analysis, uint64_t size, uint64_t bias,
			      uint64_t link_map, uint32_t first_site, uint32_t number,
			      const char **why)
{
	const struct pb_analysis *a = analysis;
	struct pb_module *m;
	uint32_t i;

	if (pb_analysis_check(analysis, size)) {
		*why = "its analysis is damaged";
		return NULL;
	}
	if (!image_matches(a, bias)) {
		*why = "it is not the file on disk (replaced since it was loaded?)";
		return NULL;
	}
	for (i = 0; i < pb_nr_modules && pb_modules[i].present; i++)
		;
	if (i == PB_MAX_MODULES) {
		*why = "too many modules";
		return NULL;
	}
	m = &pb_modules[i];
	*m = (struct pb_module){ .analysis = a, .bias = bias, .link_map = link_map,
				 .first_site = first_site, .number = number };
	if (a->nr_sites) {
		size_t words = a->nr_funcs * sizeof(struct pb_site);
		size_t sites = pb_align_up(words + pb_returns_size(a), PAGE);
		uint8_t *p;

		m->stubs_size = stubs_needed(a);
		m->region_size = sites + m->stubs_size;
		p = map_near(bias + a->image_start, bias + a->image_end, m->region_size);
		if (!p) {
			*why = "no memory for stubs within reach of it";
			return NULL;
		}
		m->sites = (struct pb_site *)p;
		pb_returns_init(m, p + words);
		m->stubs = p + sites;
		init_sites(m);
		keep_text_from_cores(a, bias);
	}
	pb_barrier();
	m->present = true;
	if (i == pb_nr_modules)
		__atomic_store_n(&pb_nr_modules, i + 1, __ATOMIC_RELEASE);
	return m;
}

/* Nobody can be in its stubs that is not in text which is unmapped with it. */
void pb_text_remove(struct pb_module *m)
{
	struct pb_module gone = *m;

	m->present = false;
	m->sites = NULL;
	m->stubs = NULL;
	m->exits = NULL;
	m->nr_exit_stubs = 0;
	m->stubs_used = m->stubs_sealed = 0;
	pb_barrier();
	pb_ride_remove(m);
	pb_jit_withdraw(m);
	if (gone.sites)
		pb_pages_unmap((uint64_t)gone.sites, gone.region_size);
	pb_pages_unmap((uint64_t)gone.analysis, gone.analysis->size);
}

struct pb_module *pb_site_module(const struct pb_site *s)
{
	for (uint32_t i = 0; i < pb_nr_modules; i++) {
		struct pb_module *m = &pb_modules[i];

		if (m->sites && (uint64_t)s - (uint64_t)m->sites < m->region_size)
			return m;
	}
	return NULL;
}

bool pb_in_stub(uint64_t pc)
{
	for (uint32_t i = 0; i < pb_nr_modules; i++)
		if (pb_modules[i].sites && pc - (uint64_t)pb_modules[i].stubs < pb_modules[i].stubs_used)
			return true;
	return pb_ride_at(pc);
}

struct pb_module *pb_module_at(uint64_t address)
{
	for (uint32_t i = 0; i < pb_nr_modules; i++) {
		struct pb_module *m = &pb_modules[i];

		if (m->present && address - m->bias - m->analysis->image_start <
				  m->analysis->image_end - m->analysis->image_start)
			return m;
	}
	return NULL;
}

struct pb_site *pb_site_by_id(uint32_t id)
{
	for (uint32_t i = 0; i < pb_nr_modules; i++) {
		struct pb_module *m = &pb_modules[i];

		if (m->present && m->first_site && id - m->first_site < m->analysis->nr_funcs)
			return &m->sites[id - m->first_site];
	}
	return NULL;
}

uint64_t pb_site_idle(const struct pb_module *m, const struct pb_site *s)
{
	return (uint64_t)m->stubs + s->stub + PB_STUB_IDLE;
}
