/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * In this order, each step tried until it succeeds:
 *
 *   1  no tracer: the text of traced functions is the file's, nobody new comes
 *      to a stub
 *   2  under stops, until no thread stands in a stub or in code of ours: each
 *      slot that holds its gate gets the return address that its entry keeps;
 *      under the last one the kernel gets the program's signal handlers
 *   3  the text of what was replaced (sigaction, exec, the loader's hook)
 *   4  the compiled-in calls
 *
 * Open calls are safe at each moment: with the gate in its slot a call returns
 * through it, gates and entries stay; with the return address, as ever.
 */
#include <sys/uio.h>
#include "engine/detach.h"
#include "arch/x86_64/hot.h"
#include "arch/x86_64/stop.h"
#include "base/sys.h"
#include "engine/creds.h"
#include "engine/ftrace.h"
#include "engine/latch.h"
#include "engine/loader.h"
#include "engine/prog.h"
#include "engine/sigaction.h"
#include "engine/thread.h"
#include "engine/uaccess.h"
#include "ring/writer.h"

#define FIRST_PAUSE_NS	1000000ull
#define LAST_PAUSE_NS	10000000000ull
#define SLICE_NS	20000000ull
#define RUN_OUT_STOPS	16		/* a minute; who is in our code then stays there */
#define PER_STOP	16384		/* entries looked at: a millisecond or two */
#define PER_CALL	256
#define MAX_IN_FLIGHT	64		/* more: another time */
#define FLIGHT_BYTES	4096		/* how far above the stack pointer its slot may lie */

static uint32_t next_entry;	/* where the next stop goes on; 0: a new pass */
static uint32_t skipped;	/* in this pass */
static bool may_wait;		/* for threads in our code */
static bool finished;

static bool in_our_code(uint64_t pc)
{
	return pb_agent_holds(pc) || pb_in_stub(pc) || pb_prog_holds(pc);
}

/* A thread that is about to enter or leave a call through its gate needs the
 * slot as it is: just below its stack pointer, or above what our C code uses. */
static bool in_flight(uint64_t slot, const struct pb_stopped *at, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (slot + 8 - at[i].sp < FLIGHT_BYTES)
			return true;
	return false;
}

/* Where the call of e returns to. Behind a jump between functions that looked
 * like a call, the address in e is another gate, of an entry of the same slot,
 * which is done with too. */
static uint64_t true_return(struct pb_entry *e, uint64_t slot)
{
	uint64_t ret = PB_ENT_RET(e);

	for (int i = 0; i < 64 && pb_is_gate(ret); i++) {
		struct pb_entry *other = pb_entry_of(ret);

		if (other == e || PB_SLOT_ADDRESS(PB_ENT_SLOT(other)) != slot)
			break;
		PB_ENT_SLOT(other) = 0;
		ret = PB_ENT_RET(other);
	}
	return ret;
}

/* Words of the program's memory, in or out, as many as are there (a stack may
 * be gone). Returns how many. */
static size_t transfer(long call, uint64_t *words, const struct iovec *remote, size_t nr)
{
	struct iovec local = { words, nr * 8 };
	long n = pb_sys(call, pb_sys(SYS_getpid), &local, 1, remote, nr, 0);

	return n < 0 ? 0 : (size_t)n / 8;
}

/* Slots that can be read and hold their gates get their return addresses. */
static void give_back_slots(struct pb_entry *const *entries, struct iovec *slots, size_t nr)
{
	static uint64_t words[PER_CALL];

	for (size_t i = 0; i < nr;) {
		size_t n = transfer(SYS_process_vm_readv, words + i, slots + i, nr - i);

		for (size_t k = i; k < i + n; k++) {
			uint64_t ret;

			if (words[k] != pb_gate_of(entries[k]) + PB_GATE_RETURN)
				continue;
			ret = true_return(entries[k], (uint64_t)slots[k].iov_base);
			if (transfer(SYS_process_vm_writev, &ret, &slots[k], 1))
				PB_ENT_SLOT(entries[k]) = 0;
		}
		i += n + 1;
	}
}

/* Under the stop, by the agent's thread. */
static int give_back(const struct pb_stopped *at, size_t nr)
{
	static struct pb_entry *entries[PER_CALL];
	static struct iovec slots[PER_CALL];
	uint32_t end = pb_gates_used(), seen = 0;
	size_t n = 0;

	finished = false;
	if (nr > MAX_IN_FLIGHT)
		return 0;
	if (!next_entry)
		skipped = 0;
	for (; next_entry < end && seen < PER_STOP; next_entry++) {
		struct pb_entry *e = (struct pb_entry *)(pb_entries + (uint64_t)next_entry * 16);
		uint64_t word = PB_ENT_SLOT(e);

		if ((word & 7) != 7 || word == PB_SLOT_GUARD)
			continue;
		seen++;
		if (in_flight(PB_SLOT_ADDRESS(word), at, nr)) {
			skipped++;
			continue;
		}
		entries[n] = e;
		slots[n++] = (struct iovec){ (void *)PB_SLOT_ADDRESS(word), 8 };
		if (n == PER_CALL) {
			give_back_slots(entries, slots, n);
			n = 0;
		}
	}
	give_back_slots(entries, slots, n);
	if (next_entry < end)
		return 0;
	next_entry = 0;
	finished = (!nr && !skipped) || !may_wait;
	if (finished)
		pb_sigaction_undo();
	return 0;
}

/* Returns how long the next pause is. A thread that changes its credentials waits
 * for this one, so the pause has slices. */
static uint64_t pause_for(uint64_t ns)
{
	for (uint64_t left = ns; left;) {
		uint64_t slice = left < SLICE_NS ? left : SLICE_NS;
		struct { uint64_t sec, nsec; } ts = { 0, slice };

		pb_creds_serve();
		pb_sys(SYS_nanosleep, &ts, NULL);
		left -= slice;
	}
	return ns < LAST_PAUSE_NS ? 2 * ns : LAST_PAUSE_NS;
}

/* Without the text's lock, as no text is written: who dlopens would wait for it,
 * in our code. */
static int run_out_of_our_code(void)
{
	struct pb_stop stop = { .ours = in_our_code, .stopped = give_back };
	uint64_t ns = FIRST_PAUSE_NS;
	int err;

	for (int stops = 0;; stops++) {
		may_wait = stops < RUN_OUT_STOPS;
		err = pb_stop_world(&stop);
		if (err || finished)
			return err;
		ns = next_entry ? ns : pause_for(ns);
	}
}

static int stop_tracing(void)
{
	int err;

	pb_text_lock();
	err = pb_ftrace_stop(true);
	pb_text_unlock();
	return err;
}

static int undo_replacements(void)
{
	int err;

	pb_text_lock();
	err = pb_ftrace_undo(true);
	if (!err)
		pb_loader_unhooked();
	pb_text_unlock();
	return err;
}

static int undo_nops(void)
{
	int err;

	pb_text_lock();
	pb_text_begin();
	for (uint32_t i = 0; i < pb_nr_modules; i++)
		if (pb_modules[i].present)
			pb_text_change_nops(&pb_modules[i], false);
	err = pb_text_commit(true);
	pb_text_unlock();
	return err;
}

void pb_detach(void)
{
	static int (*const steps[])(void) = {
		stop_tracing, run_out_of_our_code, undo_replacements, undo_nops,
	};

	/* before the program may take the signals that they need */
	pb_reads_off();
	__atomic_store_n(&pb_detached, true, __ATOMIC_RELEASE);
	__atomic_store_n(&pb_ring_map.mode, PB_RING_DISCARD, __ATOMIC_RELEASE);
	for (size_t i = 0; i < pb_array_size(steps); i++) {
		uint64_t ns = FIRST_PAUSE_NS;

		while (steps[i]())
			ns = pause_for(ns);
	}
	pb_creds_end();
}
