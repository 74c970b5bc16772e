/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The reserve (exec_memory.h) lies in memory that a fork wipes. So a forked child finds all of it
 * free, although threads of its parent used it. A vfork child may take a part of the reserve for
 * its exec. After the exec, nothing gives this part back at once: it belongs to the thread that
 * made the child, until this thread's next exec.
 */
#include <sys/mman.h>
#include "engine/process/exec_memory.h"
#include "engine/graph/thread.h"
#include "base/base.h"
#include "base/sys.h"

/* Memory of threads that call exec, but have no state. */
static struct {
	uint64_t tcb;
	struct pb_exec_area area;
} stateless[64];

/* The calling thread's TCB. In a TLS that isn't libc's (clone.c), the word that should hold this
 * address may be 0. All threads with such a TLS count as one thread, whose TCB is 1. */
static uint64_t own_tcb(void)
{
	uint64_t tcb = pb_cpu_thread_pointer();

	return tcb ? tcb : 1;
}

/* Takes an element of an array of TCBs for the calling thread. Returns whether it is the thread's
 * own now. */
static bool take(uint64_t *tcb)
{
	uint64_t none = 0;

	return __atomic_compare_exchange_n(tcb, &none, own_tcb(), false,
					   __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* NULL: the thread has no state, and all elements of stateless[] belong to other threads. */
static struct pb_exec_area *own_area(void)
{
	if (pb_tls->tcb)
		return &pb_tls->exec;
	for (unsigned i = 0; i < pb_array_size(stateless); i++)
		if (__atomic_load_n(&stateless[i].tcb, __ATOMIC_RELAXED) == own_tcb())
			return &stateless[i].area;
	for (unsigned i = 0; i < pb_array_size(stateless); i++)
		if (take(&stateless[i].tcb))
			return &stateless[i].area;
	return NULL;
}

/* The memory must be readable, because other tracers of the process, for example strace, read the
 * environment of an exec there. So it isn't mapped with PROT_WRITE only, like the agent's other
 * memory (base/pages.h). */
static void *mapped(size_t size)
{
	struct pb_exec_area *a = own_area();
	long p;

	if (!a || a->size >= size)
		return a ? a->at : NULL;
	p = pb_sys(SYS_mmap, 0, pb_align_up(size, 4096ul), PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pb_sys_failed(p))
		return NULL;
	if (a->at)
		pb_sys(SYS_munmap, a->at, a->size);
	*a = (struct pb_exec_area){ (void *)p, pb_align_up(size, 4096ul) };
	return a->at;
}

static void give_back(void)
{
	for (unsigned i = 0; i < PB_EXEC_RESERVES; i++)
		if (__atomic_load_n(&pb_process->exec_owner[i], __ATOMIC_RELAXED) == own_tcb())
			__atomic_store_n(&pb_process->exec_owner[i], 0, __ATOMIC_RELAXED);
}

static void *reserved(size_t size)
{
	struct pb_exec_reserve *r = pb_exec_reserves;

	if (size > sizeof(*r))
		return NULL;
	for (unsigned i = 0; i < PB_EXEC_RESERVES; i++, r++) {
		if (!take(&pb_process->exec_owner[i]))
			continue;
		/* for other tracers, as in mapped(). This maps nothing, so the limits allow it. */
		pb_sys(SYS_mprotect, r, sizeof(*r), PROT_READ | PROT_WRITE);
		return r;
	}
	return NULL;
}

void *pb_exec_memory(size_t size)
{
	void *p;

	give_back();
	p = mapped(size);
	return p ? p : reserved(size);
}

void pb_exec_forget(void)
{
	for (unsigned i = 0; i < pb_array_size(stateless); i++) {
		if (stateless[i].area.at)
			pb_sys(SYS_munmap, stateless[i].area.at, stateless[i].area.size);
		stateless[i].area = (struct pb_exec_area){ 0 };
		__atomic_store_n(&stateless[i].tcb, 0, __ATOMIC_RELAXED);
	}
}
