/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <asm/errno.h>
#include <sys/auxv.h>
#include "engine/uaccess.h"
#include "abi/analysis_access.h"
#include "arch/x86_64/fault.h"
#include "base/auxv.h"
#include "base/mem.h"
#include "base/sys.h"
#include "engine/text.h"

#define WAIT_TURNS	1000
#define HANDLER_ROOM	3072	/* the red zone, the slow path, the handler */
#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ	51
#endif

__thread struct pb_unblocked pb_unblocked __attribute__((tls_model("initial-exec")));
uint64_t pb_frame_room = 16384;	/* where the kernel doesn't say: more than any processor's */
static bool on;				/* a child of fork has the same dispositions */
static bool never;

bool pb_reads_on(void)
{
	if (never)
		return false;
	pb_frame_room = pb_auxv(AT_MINSIGSTKSZ, pb_frame_room) + HANDLER_ROOM;
	__atomic_store_n(&on, true, __ATOMIC_SEQ_CST);
	/* the same has been made sure of */
	__atomic_and_fetch(&pb_ring_unseen, (uint8_t)~PB_UNSEEN_PROGRAM, __ATOMIC_SEQ_CST);
	return true;
}

bool pb_reads_are_on(void)
{
	return __atomic_load_n(&on, __ATOMIC_SEQ_CST);
}

bool pb_reads_off(void)
{
	never = true;
	__atomic_or_fetch(&pb_ring_unseen, PB_UNSEEN_PROGRAM, __ATOMIC_SEQ_CST);
	__atomic_store_n(&on, false, __ATOMIC_SEQ_CST);
	/* who was left by a jump counts for ever */
	for (int i = 0; __atomic_load_n(&pb_process->readers, __ATOMIC_SEQ_CST); i++) {
		if (i == WAIT_TURNS)
			return false;
		pb_sys(SYS_sched_yield);
	}
	return true;
}

/* glibc has moments in which it blocks all signals unseen, and calls its own
 * functions in them. */
static bool of_libc(uint32_t site)
{
	if (site == PB_SITE_PROGRAM)
		return false;
	for (uint32_t i = 0; i < pb_nr_modules; i++) {
		const struct pb_module *m = &pb_modules[i];

		if (m->present && m->first_site && site - m->first_site < m->analysis->nr_funcs)
			return m->libc;
	}
	return true;
}

static bool has_room(const struct pb_hit *h)
{
	const struct pb_stack *s = h->stack;

	return s->exact && pb_stack_holds(s, h->slot) &&
	       h->slot - s->lo >= s->guard + pb_frame_room;
}

/* Behind it libc blocks all signals and may call the program's free(). */
static bool routine_runs(void)
{
	const struct pb_unblocked *u = &pb_unblocked;
	uint64_t value;

	if (u->slot == PB_MAIN_THREAD)
		return true;
	value = *(const volatile uint64_t *)u->slot;
	for (int i = 0; i < 64 && pb_is_gate(value); i++)
		value = PB_ENT_RET(pb_entry_of(value));
	return value == u->ret;
}

bool pb_may_read(const struct pb_thread *t, const struct pb_hit *h)
{
	return on && pb_unblocked.known && routine_runs() && has_room(h) && !of_libc(h->site);
}

bool pb_reads_begin(const struct pb_thread *t, const struct pb_hit *h)
{
	if (!pb_may_read(t, h))
		return false;
	__atomic_fetch_add(&pb_process->readers, 1, __ATOMIC_SEQ_CST);
	if (pb_reads_are_on())
		return true;
	pb_reads_end();
	return false;
}

void pb_reads_end(void)
{
	__atomic_fetch_sub(&pb_process->readers, 1, __ATOMIC_SEQ_CST);
}

static bool is_lasting_data(uint64_t from, size_t n)
{
	for (uint32_t i = 0; i < pb_nr_modules; i++) {
		const struct pb_module *m = &pb_modules[i];
		uint64_t size;

		if (!m->present || !m->lasting)
			continue;
		size = m->analysis->data_end - m->analysis->data_start;
		if (n <= size && from - m->bias - m->analysis->data_start <= size - n)
			return true;
	}
	return false;
}

static bool is_vouched_for(const struct pb_thread *t, const struct pb_hit *h, uint64_t from, size_t n)
{
	const struct pb_stack *s = &t->own;

	if (s->exact && h->stack == s && from >= h->slot && from < s->hi && n <= s->hi - from)
		return true;
	return is_lasting_data(from, n);
}

/* By whole words: one lies in one page. */
static int copy_faulting(uint8_t *to, uint64_t from, size_t n)
{
	int err = 0;

	while (n && !err) {
		uint64_t word, skip = from & 7, part = n < 8 - skip ? n : 8 - skip;

		err = pb_fault_load(from - skip, &word);
		if (!err)
			memcpy(to, (uint8_t *)&word + skip, part);
		to += part;
		from += part;
		n -= part;
	}
	return err;
}

int pb_copy_from_user_nofault(void *to, uint64_t from, size_t n, const struct pb_thread *t,
			      const struct pb_hit *h)
{
	int err;

	if (is_vouched_for(t, h, from, n)) {
		memcpy(to, (const void *)from, n);
		return 0;
	}
	if (!pb_reads_begin(t, h))
		return -EPERM;
	err = copy_faulting(to, from, n);
	pb_reads_end();
	return err;
}

int pb_read_slot(const struct pb_thread *t, const struct pb_hit *h, uint64_t at, uint64_t *value)
{
	const struct pb_stack *s = h->stack;
	int err;

	if (at & 7)
		return -EFAULT;
	/* what was written on a thread's stack stays mapped while it lives */
	if (at == h->slot || (t->own.exact && pb_stack_holds(&t->own, at)) ||
	    is_lasting_data(at, sizeof(*value))) {
		*value = *(const volatile uint64_t *)at;
		return 0;
	}
	err = pb_copy_from_user_nofault(value, at, sizeof(*value), t, h);
	if (err != -EPERM || !s->exact || !pb_stack_holds(s, at))
		return err;
	/* the program told that it runs on it */
	*value = *(const volatile uint64_t *)at;
	return 0;
}
