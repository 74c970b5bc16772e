/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tests how long the agent waits for a recorder that gets no processor. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/sys.h"
#include "base/task.h"
#include "engine/sandbox.h"
#include "engine/wire.h"
#include "ring/writer.h"

#define PATIENCE_NS	20000000ull
#define STARVED_NS	200000000ull

static struct pb_ring ring;
struct pb_ring_map pb_ring_map = { .ring = &ring };
uint32_t pb_sandboxed;
bool pb_filtered;
uint32_t pb_observer_pid = 1;

static int looks;
static bool beats, held_up;

/* Stands for base/task.c. A look at the recorder's threads takes time. If `beats` is set, the
 * recorder gets its processor during the look: it sends a heartbeat and sleeps again, so the look
 * finds no thread that waits for a processor. */
bool pb_process_is_held_up(uint32_t pid)
{
	looks++;
	ring.heartbeat += beats;
	return held_up;
}

static void heartbeat_during_the_look(void **state)
{
	looks = 0;
	beats = true;
	assert_true(pb_recorder_lives());
	assert_int_equal(looks, 1);
	assert_int_equal(ring.silent, 0);
}

static void no_heartbeat(void **state)
{
	looks = 0;
	beats = false;
	assert_false(pb_recorder_lives());
	assert_int_equal(looks, 1);
	assert_int_equal(ring.silent, ring.heartbeat + 1);
}

/* A recorder that gets no processor, and never answers: the wait lasts for starved_ns. */
static void own_limit_for_a_starved_recorder(void **state)
{
	struct pb_wire w = {
		.patience_ns = PATIENCE_NS, .starved_ns = STARVED_NS, .recorder = 1,
	};
	uint64_t start = pb_now_ns();
	int pair[2], fd;
	uint32_t len;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair), 0);
	w.fd = pair[0];
	w.heartbeat = ++ring.heartbeat;	/* not the one at which another test gave up */
	beats = false;
	held_up = true;
	assert_int_equal(pb_wire_receive(&w, &fd, &len), -ETIMEDOUT);
	held_up = false;
	assert_in_range(pb_now_ns() - start, STARVED_NS, PB_STARVED_NS);
	assert_true(w.gave_up);
	close(pair[0]);
	close(pair[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(heartbeat_during_the_look),
		cmocka_unit_test(no_heartbeat),
		cmocka_unit_test(own_limit_for_a_starved_recorder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
