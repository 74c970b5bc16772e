/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the parts of the program "steps" share. steps.cc says what the program does.
 *
 *   steps.cc		has the table of calls, and chooses calls from it
 *   scenario.cc	makes one call in a certain state, and marks its end in the recording
 *   handler.cc		acts at one instruction of the call
 *   forks.cc		makes the handler's children
 *   places.cc		tells code of the agent from other code, and prints what a handler sees
 *   output.cc		prints
 *   functions.S	has the traced functions
 *
 * The program steps one call at a time, even if the call is made in a thread or continued in a
 * child. So the state of the call is in global variables, without locks. The namespace keeps
 * names like step apart from libc's names.
 */
#ifndef STEPS_H
#define STEPS_H

#include <pthread.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <ucontext.h>
#include "../../../src/arch/layout.h"

namespace steps {

#define NR_FUNCTIONS	27
#define AGENT_MAX	(4 << 20)

extern "C" {
/* functions.S */
long t_leaf(long), t_far(long), t_caller(long), t_cond(long), t_tail(long), t_tree(long);
long t_mark(long), t_hand(long), t_out(long), t_nap(long), t_unseen(long), t_entry(long);
long t_flush(long), t_calls_tail(long), t_away(long), t_away_tail(long), t_late(long);
long t_late_tail(long), t_hidden(long);
long t_root(long, long (*)(long)), t_deep(long calls, long (*)(long), long);
long call_pops(long), call_framed(long), call_traps(long), call_cramped(long);
long call_entry_cramped(long), fill_cramped(long), gone_or_untraced(long);
void run_stepped(long (*f)(long), long x, uint64_t registers[16]);
void note_pc(void);

/* variables and functions that functions.S uses */
extern uint64_t cramped_at, interrupted_pc, made[NR_FUNCTIONS];
extern void *noted_goes_on;
void jump_out(void), nap(void), long_nap(void);
}

/* ---- output.cc --------------------------------------------------------------- */

/* Ends the program with a message, and the status 3. */
void die(const char *format, ...);

/* The program's output is kept in memory until print_out() writes it. A child begins with
 * forget_text(), since the kept text is the parent's. */
void print(const char *format, ...), print_out(void), forget_text(void);

/* ---- places.cc --------------------------------------------------------------- */

extern uint64_t agent;		/* the agent's address; 0: no agent */
extern char *ring;		/* this process's mapping of the ring (src/abi/ring.h), or NULL */

void find_agent(void);
uint64_t symbol(const char *name);
bool in_program(uint64_t pc), in_agent(uint64_t pc);

/* If pc is in a copy, returns the same place in the agent, else pc. */
uint64_t original(uint64_t pc);

/* Writes a PC. In the program: the PC itself. In the agent: "+" and the offset in the agent. In a
 * stub: "?" and the PC. In a copy of the agent's code: like the agent. */
void put_pc(char *buffer, size_t size, uint64_t pc);

/* Prints what a handler sees: an "o" line. */
void look(const greg_t *g);

/* ---- forks.cc ---------------------------------------------------------------- */

extern bool is_child;		/* this process is a child of the handler */

/* If two threads had the same tid, the tid would name two parts of the recording. So each tid is
 * used only once. */
bool is_new(long tid);
void use(long tid);

/* fork_here() and fork_late() fork a child, which continues the stepped call. After fork_here(),
 * the parent waits until the child has ended. After fork_late(), the parent goes on, and the child
 * waits for release_late_child(). */
void fork_here(void), fork_late(void), release_late_child(void);

/* ---- handler.cc -------------------------------------------------------------- */

enum act {
	NOTHING, LOOK, CALLS, FILL, JUMP, CALLS_JUMP, JUMP_INSIDE, LEAF_INSIDE, FORK, FORK_CALLS,
	FORK_LATE, THROW, CANCEL, CANCELLED, NR_ACTS
};
extern const char *const act_names[NR_ACTS];

struct thrown { long at; };

extern bool raw, both;		/* see steps.cc */
extern enum act act;
extern volatile long step, step_at;
extern volatile bool happened;	/* the handler has acted */
extern char acted_at[32];	/* the real program counter at which the handler acted */
extern sigjmp_buf out, *inside;

/* An asynchronous cancellation of the thread `cancelled`. The handler requests it by setting
 * cancel_now, and waits until cancel_sent is set. */
extern volatile bool cancel_now, cancel_sent;
extern pthread_t cancelled;

extern bool observing;		/* the handler calls look() at each instruction */
extern bool noting;		/* the handler sets site_word, ret_word and jump_word */
extern bool poke_uncounted;	/* the handler clears the agent's pointer to a thread's counts just
				 * before the agent counts a lost call */

/* Addresses of the pointers through which stubs jump to the agent. site_word: the pointer of the
 * first site that a call hits. ret_word: the pointer for returns. jump_word: the pointer for tail
 * jumps. */
extern uint64_t *site_word, *ret_word, *jump_word;

/* The instructions of the agent that were stepped, by their offsets. visited_copies: how many of
 * them first ran in a copy near the program. */
extern unsigned char visited[AGENT_MAX];
extern unsigned visited_copies;

void install(void);

/* ---- scenario.cc ------------------------------------------------------------- */

/* States of the agent that usually exist only for an instant, while the tracer changes. The program
 * makes these states by writing to the agent's memory. */
enum poke { NO_POKE, NO_DEPTH, DEPTH, LIST, IDLE_RET, IDLE_JUMP, UNCOUNTED };

struct scenario {
	const char *function, *state;
	long (*f)(long);
	long x;
	long depth;		/* number of calls that are open around the stepped call */
	bool fresh;		/* the call is made in a new thread */
	long filled;		/* calls that are made first. 0: none; -N: calls_to_fill - N calls;
				 * 1: the calls of fill_cramped() */
	void (*before)(void);
	long room;		/* free bytes of the thread's stack; 0: the whole stack */
	enum poke poke;
};

extern const char *function, *state;	/* of the scenario that set() has chosen */
extern __thread long marks;		/* number of the thread's marks */
extern uint64_t made_at_mark[NR_FUNCTIONS];	/* made[] at the last mark */
extern uint64_t wanted[16];		/* the registers after the call */
extern long calls_to_fill;		/* 0: find_calls_to_fill() hasn't run */

void make_stacks(void);
void set(const struct scenario *s);

/* Ends the part of the recording that belongs to one step. */
void mark(const char *what, long k, int depth);

/* Runs a scenario. Returns true if the call took at least k steps, so that the handler acted. */
bool run(const struct scenario *s, enum act a, long k);
void find_calls_to_fill(const struct scenario *s);

}
#endif
