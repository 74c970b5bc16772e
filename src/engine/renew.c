/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An agent that has detached has tables of modules, stubs, handlers and filters in more than a
 * hundred variables. Code that resets them one by one would sooner or later miss one. So this file
 * resets the whole data segment, as exec would reset it.
 *
 *   [relro][.data, pb_lasting][.bss]
 *
 * The relocated values of .data are copied before the agent runs for the first time. .bss becomes
 * zeros.
 *
 * The memory of threads' states stays mapped, but is filled with zeros. Each thread's TLS word
 * pointed to its state. Another thread may now get this state, so these TLS words are reset
 * (pb_threads_forget()). In a forked child the TLS word of the thread that forked isn't known. That
 * thread's next hit is like the first hit in a forked child, and the memory must still be there.
 */
#include <elf.h>
#include <sys/mman.h>
#include "engine/renew.h"
#include "engine/graph/thread.h"
#include "engine/process/exec_memory.h"
#include "engine/prog/prog.h"
#include "engine/text/text.h"
#include "base/base.h"
#include "base/mem.h"
#include "base/pages.h"
#include "base/sys.h"

#define PAGE	4096ul

extern uint8_t __start_pb_lasting[] __attribute__((visibility("hidden")));
extern uint8_t __stop_pb_lasting[] __attribute__((visibility("hidden")));

static PB_LASTING uint8_t *initial;	/* the initial values of .data */
static PB_LASTING void *spared;		/* the page of pb_renew_spared(), or NULL */

PB_LASTING uint32_t pb_renewals;

struct segment {
	uint8_t *data, *bss, *end;
};

static struct segment find_segment(void)
{
	const Elf64_Ehdr *e = (const void *)__ehdr_start;
	const Elf64_Phdr *p = (const void *)(__ehdr_start + e->e_phoff);
	uint8_t *base = (uint8_t *)__ehdr_start;
	struct segment s = { .end = (uint8_t *)_end };

	for (int i = 0; i < e->e_phnum; i++) {
		if (p[i].p_type == PT_GNU_RELRO)
			s.data = base + pb_align_up(p[i].p_vaddr + p[i].p_memsz, PAGE);
		if (p[i].p_type == PT_LOAD && p[i].p_flags & PF_W)
			s.bss = base + p[i].p_vaddr + p[i].p_filesz;
	}
	return s;
}

int pb_renew_keep(void)
{
	struct segment s = find_segment();
	size_t size = (size_t)(s.bss - s.data);
	long p = pb_pages_map(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pb_sys_failed(p))
		return (int)p;
	memcpy((void *)p, s.data, size);
	initial = (uint8_t *)p;
	return 0;
}

bool pb_renew_possible(void)
{
	return initial;
}

/* If two threads map the page at the same time, one of them unmaps its page again. */
void *pb_renew_spared(void)
{
	void *page = __atomic_load_n(&spared, __ATOMIC_ACQUIRE);
	long p;

	if (page)
		return page;
	p = pb_pages_map(0, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pb_sys_failed(p))
		return NULL;
	pb_sys(SYS_madvise, p, PAGE, MADV_WIPEONFORK);
	if (__atomic_compare_exchange_n(&spared, &page, (void *)p, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return (void *)p;
	pb_pages_unmap((uint64_t)p, PAGE);
	return page;
}

/* Unmaps what the agent has mapped. Mappings inside of its image stay: the program might map memory
 * in a hole there, and the loader, a debugger and the next attach take these addresses for the
 * agent's. */
static void unmap_all(void)
{
	uint64_t at, size;

	pb_text_withdraw();
	for (uint32_t i = 0; pb_pages_get(i, &at, &size); i++)
		if (size && !pb_agent_holds(at) && at != (uint64_t)initial &&
		    at != (uint64_t)spared && at != (uint64_t)pb_process)
			pb_sys(SYS_munmap, at, size);
}

static void zero(uint8_t *from, uint8_t *to)
{
	uint8_t *page = (uint8_t *)pb_align_up((uint64_t)from, PAGE);

	memset(from, 0, (size_t)(page - from));
	if (pb_sys(SYS_madvise, page, pb_align_up((uint64_t)(to - page), PAGE), MADV_DONTNEED))
		memset(page, 0, (size_t)(to - page));
}

/* From the first store on, no variable but those on the stack may be used. */
void pb_renew(void)
{
	struct segment s = find_segment();
	uint8_t *from = initial, *lasting = __start_pb_lasting, *after = __stop_pb_lasting;
	size_t size = (size_t)(s.bss - s.data);

	pb_renewals++;
	pb_threads_forget();
	pb_exec_forget();
	pb_prog_forget_code();
	unmap_all();
	memcpy(s.data, from, (size_t)(lasting - s.data));
	memcpy(after, from + (after - s.data), (size_t)(s.bss - after));
	zero(s.bss, s.end);
	pb_pages_add((uint64_t)initial, size);
	pb_pages_add((uint64_t)spared, PAGE);
}
