/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Adds modules to the table of modules (text_modules.c) and removes them. Also has the lock under
 * which text changes. A row of the table is complete before its sizes, its flag `present`, and the
 * number of rows publish it.
 */
#include <asm/errno.h>
#include "engine/text/text_priv.h"
#include "abi/analysis_check.h"
#include "base/base.h"
#include "base/pages.h"
#include "base/sys.h"

uint32_t *pb_text_lock_word;

/* dlopen calls this function, perhaps under a seccomp filter. So the function makes a system call
 * only if the lock isn't free. If a signal handler forks during the wait, the child's word becomes
 * 0, so that the child gets the lock. */
void pb_text_lock(void)
{
	uint32_t free = 0;

	while (!__atomic_compare_exchange_n(pb_text_lock_word, &free, 1, false, __ATOMIC_ACQUIRE,
					    __ATOMIC_RELAXED)) {
		free = 0;
		pb_sys(SYS_sched_yield);
	}
}

void pb_text_unlock(void)
{
	__atomic_store_n(pb_text_lock_word, 0, __ATOMIC_RELEASE);
}

const char *pb_text_why(int err)
{
	if (err == -ENOEXEC || err == -EACCES)
		return "the kernel forbids the process to make memory executable (PR_SET_MDWE, "
		       "SELinux)";
	return err == -ENOMEM ? "the process can map no more memory" :
				"the program's text could not be changed";
}

static bool image_matches(const struct pb_analysis *a, uint64_t bias)
{
	if (!a->note_vaddr)
		return true;	/* There is no build ID to compare. But the recorder has compared
				 * the file with the mapped one (recorder/loaded.c). And before a
				 * window is patched, its bytes are compared with the file's. */
	return !memcmp((const void *)(bias + a->note_vaddr), a->build_id, a->build_id_len);
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
	m->image = bias + a->image_start;
	m->data = bias + a->data_start;
	m->data_size = a->data_end - a->data_start;
	__atomic_store_n(&m->image_size, a->image_end - a->image_start, __ATOMIC_RELEASE);
	__atomic_store_n(&m->nr_funcs, a->nr_funcs, __ATOMIC_RELEASE);
	m->present = true;
	if (i == pb_nr_modules)
		__atomic_store_n(&pb_nr_modules, i + 1, __ATOMIC_RELEASE);
	return m;
}

void pb_text_drop(struct pb_module *m)
{
	static const struct pb_analysis empty;

	m->present = false;
	m->image_size = 0;
	m->nr_funcs = 0;
	m->sites = NULL;
	m->stubs = NULL;
	m->exits = NULL;
	m->stubs_size = 0;
	m->analysis = &empty;
	pb_barrier();
}

/* Called when the loader is about to unmap the module. Unmaps the stubs without checking whether a
 * thread is in one of them. A correct program has no thread in a stub now: from the stub, the
 * thread would continue in the module's text, which goes away. */
void pb_text_remove(struct pb_module *m, bool (*unused)(void))
{
	struct pb_module gone = *m;

	pb_text_drop(m);
	pb_shared_remove(m);
	pb_jit_withdraw(m);
	if (!unused())
		return;
	pb_stubs_unmap(&gone);
	pb_pages_unmap((uint64_t)gone.analysis, gone.analysis->size);
}

void pb_text_withdraw(void)
{
	for (struct pb_module *m = pb_modules; m < pb_modules + pb_nr_modules; m++)
		if (m->present)
			pb_jit_withdraw(m);
}

bool pb_in_stub(uint64_t pc)
{
	for (uint32_t i = 0; i < pb_nr_modules; i++)
		if (pb_modules[i].sites &&
		    pc - (uint64_t)pb_modules[i].stubs < pb_modules[i].stubs_size)
			return true;
	return pb_shared_at(pc);
}
