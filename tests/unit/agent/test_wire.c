/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tests how long the agent waits for a recorder that gets no processor. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/task.h"
#include "engine/sandbox.h"
#include "engine/wire.h"
#include "ring/writer.h"

static struct pb_ring ring;
struct pb_ring_map pb_ring_map = { .ring = &ring };
bool pb_sandboxed, pb_filtered;
uint32_t pb_observer_pid = 1;

static int looks;
static bool beats;

/* Stands for base/task.c. A look at the recorder's threads takes time. If `beats` is set, the
 * recorder gets its processor during the look: it sends a heartbeat and sleeps again, so the look
 * finds no thread that waits for a processor. */
bool pb_process_is_held_up(uint32_t pid)
{
	looks++;
	ring.heartbeat += beats;
	return false;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(heartbeat_during_the_look),
		cmocka_unit_test(no_heartbeat),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
