/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program that single-steps its own calls. For each k, its SIGTRAP handler acts at the k-th
 * instruction of a call: it makes calls, jumps, throws, forks, or cancels the thread. The handler
 * counts all instructions, those of the program and those of the agent. run_steps reads the
 * program's output:
 *
 *   o FUNCTION STATE K PC RSP REGISTERS | CALLERS    what a handler sees at an instruction
 *   = FUNCTION STATE K REGISTERS                     K: number of steps; REGISTERS: after the call
 *   s TID MARK ACTION FUNCTION STATE K HAPPENED PC CALLS...
 *                                                    calls of each function since the last mark
 *   c TID EXPECTED                                   the number of the thread's marks
 *   x ACTION FUNCTION STATE K STATUS                 a child died
 *   v OFFSET                                         an instruction of the agent that was stepped
 *   n COUNT                                          how many of these instructions first ran in
 *                                                    a copy near the program
 *
 *   steps libc|raw|both POINTS
 *         all|sampled|quick|brief|observe|stepped|late|extra|names [FUNCTION,... [ACTION,...]]
 *
 * names: only prints FUNCTION:STATE of each call that "all" and "sampled" would make.
 * POINTS: the number of instructions that are tried in a call on a slow path. On other paths, "all"
 * tries all instructions; sampled, quick and brief runs try 5 * POINTS. FUNCTION may be
 * FUNCTION:STATE.
 * raw: the handler is installed by a raw system call, so that the agent isn't notified of the
 * handler. both: like raw, but at each instruction SIGUSR1 comes right after the step's signal. The
 * handler of SIGUSR1 is installed through libc.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "steps.h"

namespace steps {

static bool all;

/* Doesn't use libc, because the first call would also step through the loader's resolver. The
 * system call leaves the flags in r11. The cmp sets the flags, so that r11 is the same in each
 * run. */
void nap(void)
{
	struct timespec t = { 0, 500000 };
	long ret = SYS_nanosleep;

	__asm__ volatile("cmp %%rax, %%rax; syscall" : "+a"(ret) : "D"(&t), "S"(0)
			 : "rcx", "r11", "memory");
}

/* Sleeps so long that the time field of a LEAF can't express the time since the last record: the
 * field has 31 bits, in units of the time-stamp counter. On some machines this is over a second. */
void long_nap(void)
{
	unsigned long start = __builtin_ia32_rdtsc();
	struct timespec t = { 0, 100000000 };

	while (__builtin_ia32_rdtsc() - start <= 1ul << 31)
		nanosleep(&t, NULL);
}

static void pause_1ms(void)
{
	struct timespec t = { 0, 1500000 };

	nanosleep(&t, NULL);
}

static void pause_100ms(void)
{
	struct timespec t = { 0, 100000000 };

	nanosleep(&t, NULL);
}

/* Makes a traced call and leaves it by siglongjmp(). Then makes an untraced call, which has the
 * same return slot and returns through the first call's exit. */
static long leave_and_return(long x)
{
	sigjmp_buf here;

	act = JUMP_INSIDE;
	inside = &here;
	if (!sigsetjmp(here, 0))
		gone_or_untraced(x);
	act = NOTHING;
	return gone_or_untraced(0);
}

static long call_sigaction(long)
{
	return sigaction(SIGUSR2, NULL, NULL);
}

/*
 * Flags of a call. QUICK: quick runs make it. BRIEF: even shorter runs make it, too. SLOW: it takes
 * a slow path.
 * Stepping runs ("stepped", "late" and "extra") only find out which instructions calls reach.
 * STEPPED: only stepping runs make the call. FILLED: stepping runs make the call once more, and
 * fill the chunk in which a record was just reserved. EXTRA: of the stepping runs, only "extra"
 * makes the call. LATE: the call may take seconds, so only "late" makes it. RUN: the call is made
 * once, without stepping.
 */
enum { QUICK = 1, BRIEF = 2, SLOW = 4, STEPPED = 8, FILLED = 16, LATE = 32, RUN = 64, EXTRA = 128 };
static const struct choice {
	struct scenario s;
	int flags;
} choices[] = {
	{ { "t_leaf", "warm", t_leaf, 4 }, 0 },
	{ { "t_far", "warm", t_far, 4 }, 0 },
	{ { "t_caller", "warm", t_caller, 4 }, QUICK | BRIEF | FILLED },
	{ { "t_cond", "odd", t_cond, 5 }, QUICK | FILLED },
	{ { "t_calls_tail", "warm", t_calls_tail, 4 }, QUICK | FILLED },
	{ { "t_cond", "even", t_cond, 4 }, QUICK },
	{ { "t_tail", "warm", t_tail, 4 }, 0 },
	{ { "t_tail", "framed", call_framed, 4 }, QUICK },
	{ { "t_pops", "warm", call_pops, 4 }, QUICK },
	{ { "t_tree", "warm", t_tree, 4 }, 0 },
	{ { "t_entry", "warm", t_entry, 4 }, SLOW },
	{ { "t_unseen", "warm", t_unseen, 4 }, QUICK },
	{ { "t_caller", "first", t_caller, 4, 0, true }, QUICK | SLOW },
	{ { "t_caller", "full", t_caller, 4, 0, true, -1 }, QUICK | SLOW },
	{ { "t_caller", "full-1", t_caller, 4, 0, true, -2 }, SLOW },
	{ { "t_caller", "full-2", t_caller, 4, 0, true, -3 }, SLOW },
	{ { "t_leaf", "full", t_leaf, 4, 0, true, -1 }, SLOW },
	{ { "t_cond", "full", t_cond, 4, 0, true, -1 }, SLOW },
	{ { "t_tree", "full-8", t_tree, 4, 0, true, -8 }, SLOW },
	{ { "t_tree", "full", t_tree, 4, 0, true, -1 }, SLOW },
	{ { "t_caller", "deep123", t_caller, 4, 123 }, SLOW },
	{ { "t_caller", "deep124", t_caller, 4, 124 }, QUICK | SLOW },
	{ { "t_caller", "deep125", t_caller, 4, 125 }, SLOW },
	{ { "t_tail", "deep124", t_tail, 4, 124 }, SLOW },
	{ { "t_tail", "deep125", t_tail, 4, 125 }, SLOW },
	{ { "t_leaf", "late", t_leaf, 4, 0, false, 0, pause_1ms }, 0 },
	{ { "t_nap", "warm", t_nap, 4 }, SLOW },
	{ { "t_cond", "late", t_cond, 5, 0, false, 0, pause_100ms }, LATE },
	{ { "t_caller", "late", t_caller, 4, 0, false, 0, long_nap }, LATE },
	{ { "t_away", "warm", t_away, 4 }, STEPPED },
	{ { "t_away_tail", "warm", t_away_tail, 4 }, STEPPED },
	{ { "t_late", "warm", t_late, 4 }, LATE },
	{ { "t_late_tail", "warm", t_late_tail, 4 }, LATE },
	{ { "t_traps", "warm", call_traps, 4 }, STEPPED | FILLED },
	{ { "sigaction", "direct", call_sigaction, 4 }, STEPPED },
	{ { "t_cramped", "cramped", call_cramped, 4, 0, true, 0, NULL, 1000 }, EXTRA | QUICK },
	{ { "t_cramped", "cramped-full", call_cramped, 4, 0, true, 1, NULL, 1000 }, EXTRA },
	{ { "t_cramped_tail", "cramped-more", call_cramped, 4, 0, true, 0, NULL, 320 },
	  STEPPED | EXTRA },
	{ { "t_cramped_tail", "uncounted", call_cramped, 4, 0, true, 0, NULL, 1000, UNCOUNTED },
	  STEPPED | EXTRA },
	{ { "t_entry", "cramped", call_entry_cramped, 4, 0, true, 0, NULL, 1000 },
	  STEPPED | EXTRA },
	{ { "t_gone", "skipped", leave_and_return, 1 }, RUN | QUICK | BRIEF },
	{ { "t_hidden", "first", t_hidden, 4, 0, true }, STEPPED | EXTRA },
	{ { "t_tree", "deep123", t_tree, 4, 123 }, STEPPED | EXTRA },
	{ { "t_tree", "deep124", t_tree, 4, 124 }, STEPPED | EXTRA },
	{ { "t_far", "off", t_far, 4, 0, false, 0, NULL, 0, NO_DEPTH }, STEPPED | EXTRA },
	{ { "t_hidden", "off", t_hidden, 4, 0, false, 0, NULL, 0, NO_DEPTH }, STEPPED | EXTRA },
	{ { "t_far", "depth", t_far, 4, 0, false, 0, NULL, 0, DEPTH }, STEPPED | EXTRA },
	{ { "t_far", "list", t_far, 4, 0, false, 0, NULL, 0, LIST }, STEPPED | EXTRA },
	{ { "t_far", "idle", t_far, 4, 0, false, 0, NULL, 0, IDLE_RET }, STEPPED | EXTRA },
	{ { "t_tail", "idle", t_tail, 4, 0, false, 0, NULL, 0, IDLE_JUMP }, STEPPED | EXTRA },
};

static bool is_listed(const char *names, const char *name)
{
	size_t n = strlen(name);

	for (const char *at = names; at; at = strchr(at, ','), at += at ? 1 : 0)
		if (!strncmp(at, name, n) && (at[n] == ',' || !at[n]))
			return true;
	return false;
}

static bool is_chosen(const char *names, const struct scenario *s)
{
	char with_state[64];

	snprintf(with_state, sizeof(with_state), "%s:%s", s->function, s->state);
	return is_listed(names, s->function) || is_listed(names, with_state);
}

static long steps_of_last;

static void observe(const struct scenario *s)
{
	set(s);
	observing = true;
	run(s, LOOK, 0);
	observing = false;
	steps_of_last = step;
	print("= %s %s %ld", function, state, step);
	for (int i = 0; i < 16; i++)
		print(" %lx", wanted[i]);
	print("\n");
}

static void each_step(const struct scenario *s, enum act a, long stride)
{
	for (long k = 1 + a % stride; k < 100000 && run(s, a, k); k += stride)
		;
}

static void each_choice(const struct choice *c, long steps, long points, const char *acts)
{
	for (int a = CALLS; a < NR_ACTS; a++) {
		if (a == FILL || (*acts && !is_listed(acts, act_names[a])))
			continue;
		bool in_a_thread = a == CANCEL || a == CANCELLED;
		long most = c->flags & SLOW ? points : all ? steps : 5 * points;

		/* A call that is to be cancelled is made in a thread of its own, so it can't also
		 * be made at a depth or in a fresh thread. The agent doesn't know of a raw handler.
		 * So it notices the handler's fork only at the child's next call, and the child's
		 * account isn't exact. */
		if ((in_a_thread && (c->s.depth || (c->s.fresh && !c->s.room))) ||
		    (raw && (a == FORK || a == FORK_CALLS || a == FORK_LATE)))
			continue;
		each_step(&c->s, (enum act)a, steps > most ? steps / most : 1);
	}
}

/* Makes the scenario's call, without an action, while *word has the given value. */
static void run_with(const struct scenario *s, uint64_t *word, uint64_t value)
{
	uint64_t was = *word;

	*word = value;
	run(s, NOTHING, 0);
	*word = was;
}

static void run_poked(const struct scenario *s)
{
	uint32_t *max_depth = (uint32_t *)(agent + symbol("pb_max_depth")), depth = *max_depth;
	/* the main thread has the first state */
	char *thread = *(char **)(agent + symbol("pb_threads"));
	uint32_t *copied = (uint32_t *)(thread + T_MAX_DEPTH);

	site_word = NULL;
	ret_word = jump_word = NULL;
	noting = true;
	run(s, NOTHING, 0);
	noting = false;
	if (s->poke == UNCOUNTED) {
		poke_uncounted = true;
		run(s, NOTHING, 0);
		poke_uncounted = false;
	} else if (s->poke == NO_DEPTH || s->poke == DEPTH) {
		if (*copied != depth)
			die("the thread has another limit of depth");
		*max_depth = *copied = s->poke == DEPTH ? 1000 : 0;
		run(s, NOTHING, 0);
		*max_depth = *copied = depth;
	} else if (s->poke == LIST) {
		if (site_word)
			run_with(s, site_word, agent + symbol("pb_list"));
	} else if (s->poke == IDLE_RET && ret_word) {
		run_with(s, ret_word, agent + symbol("pb_exit_ret_idle"));
	} else if (s->poke == IDLE_JUMP && jump_word) {
		run_with(s, jump_word, agent + symbol("pb_exit_jump_idle"));
	}
}

/* Steps a call to see which instructions it reaches. A FILLED call is also stepped with a handler
 * that fills the chunk in which a record was just reserved. */
static void step_only(const struct choice *c)
{
	if (c->flags & RUN) {
		happened = false;
		c->s.f(c->s.x);
		mark(act_names[act], 0, 6);
		return;
	}
	if (c->s.poke) {
		run_poked(&c->s);
		return;
	}
	/* Makes the call twice. On a busy machine, one call may take so long that it executes other
	 * instructions than usual. */
	for (int i = 0; i < (c->flags & LATE ? 1 : 2); i++)
		run(&c->s, NOTHING, 0);
	if (c->flags & FILLED)
		run(&c->s, FILL, 0);
}

}

using namespace steps;

int main(int argc, char **argv)
{
	long points = argc > 2 ? atol(argv[2]) : 1;
	const char *what = argc > 3 ? argv[3] : "all";
	int flags = !strcmp(what, "quick") ? QUICK : !strcmp(what, "brief") ? BRIEF : 0;
	const char *functions = argc > 4 ? argv[4] : "", *acts = argc > 5 ? argv[5] : "";
	bool only = !strcmp(what, "observe"), late = !strcmp(what, "late");
	bool extra = !strcmp(what, "extra");
	bool names, stepped = late || extra || !strcmp(what, "stepped");

	both = argc > 1 && !strcmp(argv[1], "both");
	raw = both || (argc > 1 && !strcmp(argv[1], "raw"));
	all = !strcmp(what, "all");
	names = !strcmp(what, "names");
	find_agent();
	make_stacks();
	install();
	mark("begin", 0, 200);
	for (const struct choice &c : choices) {
		if ((stepped && !(c.flags & EXTRA) == extra) ||
		    (*functions && !is_chosen(functions, &c.s)) ||
		    (flags && !(c.flags & flags)) || (c.flags & STEPPED && !stepped) ||
		    (c.flags & LATE && !late) || (c.s.filled < 0 && stepped))
			continue;
		if (c.s.filled < 0 && !calls_to_fill) {
			set(&c.s);
			find_calls_to_fill(&c.s);
		}
		if (names) {
			print("%s:%s\n", c.s.function, c.s.state);
			continue;
		}
		if (stepped || c.flags & RUN) {
			set(&c.s);
			step_only(&c);
			continue;
		}
		observe(&c.s);
		if (!only)
			each_choice(&c, steps_of_last, points, acts);
	}
	for (unsigned i = 0; i < AGENT_MAX; i++)
		if (visited[i])
			print("v %x\n", i);
	print("n %u\n", visited_copies);
	print("c %ld %ld\n", (long)getpid(), marks);
	print_out();
	return 0;
}
