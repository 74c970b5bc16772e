/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The signal handler of the writer's tests. It runs after each instruction, or after each from a
 * breakpoint on. At one or two steps, it does what the test has chosen: nothing, write records,
 * change chunks, free or drain chunks, fork, or jump. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>
#include <cmocka.h>

#include "writer_step.h"

long step, step_at, step_later;
uint8_t *drained;
enum nested nested;
bool jump, all, is_child;
sigjmp_buf out;
int go_on[2];
pid_t child;

static struct step_path *path, *path_later;	/* to step_at, and from there to step_later */
static struct step_breakpoint breakpoint;
static long path_begin;			/* the number of the step at which the current path began */

void prepare_steps(struct step_path *p, long k, struct step_path *later)
{
	step = path_begin = 0;
	step_at = at = k;
	path = p;
	path_later = later;
	path_arm(&breakpoint, path);
}

bool runs_to_breakpoint(void)
{
	return breakpoint.path;
}

/* Forks. Gives the child's thread a new state, as the engine does in a child when the handler that
 * forked ends. */
static void fork_here(ucontext_t *uc)
{
	char c;

	assert_int_equal(pipe(go_on), 0);
	child = fork();
	assert_true(child >= 0);
	if (child) {
		close(go_on[0]);
		return;
	}
	is_child = true;
	close(go_on[1]);
	if (read(go_on[0], &c, 1))
		_exit(2);
	memset(done, 0, next_record);
	pb_writer_init(&w, 2, 2, 1);
	for (int i = 0; nested == FORK_RECORD && i < 1000; i++)
		put(SHORT);
	pb_own_resume(uc, (uint64_t)ring, SIZE);
}

/* The hit of the first handler is deeper on the stack than the hit of the second handler. */
static __attribute__((noinline)) void put_deeper(void)
{
	volatile char *room = __builtin_alloca(step == step_at ? 600 : 16);

	room[0] = 1;
	put(SHORT);
	room[1] = 1;
}

static void act(ucontext_t *uc)
{
	uint64_t nr, slot = w.slot;

	if (nested == UNSEEN) {
		put_deeper();
		return;
	}
	if (nested >= FORK) {
		fork_here(uc);
		return;
	}
	nr = pb_writer_interrupted(&w, (uint64_t)uc->uc_mcontext.gregs[REG_RSP],
				   (uint64_t)__builtin_frame_address(0) + 8);
	if (nested == SUPPLY) {
		pb_ring_map.taken[0] &= ~2ul;
		chunk(1)->state = PB_CHUNK_FREE;
	}
	if (nested == RECORD || nested == SUPPLY)
		put(SHORT);
	if (nested == DRAIN || nested == AGAIN) {
		fill_chunk();
		put(SHORT);
		put(SHORT);
		drain(drained);
	}
	if (nested == AGAIN) {
		fill_chunk();
		put(SHORT);
		put(SHORT);
	}
	for (int i = 0; nested == CHANGE && i < 2; i++) {
		fill_chunk();
		put(SHORT);
		put(LONG);
	}
	if (jump)
		siglongjmp(out, 1);
	pb_writer_resumed(&w, nr);
	w.slot = slot;
}

void on_step(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	greg_t *flags = &uc->uc_mcontext.gregs[REG_EFL];

	step = path_arrived(&breakpoint, uc) ? path_begin + path->known : step + 1;
	if (path)
		path_note(path, step - path_begin, uc);
	if (step != step_at && step != step_later)
		return;
	if (!step_later || step == step_later)
		*flags &= ~(greg_t)TRAP_FLAG;
	act(uc);
	if (step_later > step) {
		path = path_later;
		path_begin = step;
		if (path_arm(&breakpoint, path))
			*flags &= ~(greg_t)TRAP_FLAG;
	}
}
