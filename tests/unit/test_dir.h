/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A private directory for the tests of one program. make_dir() and remove_dir() are the set-up and
 * the tear-down of cmocka_run_group_tests(). */
#ifndef PB_TEST_DIR_H
#define PB_TEST_DIR_H
#include <stdio.h>
#include <stdlib.h>

static char dir[] = "/tmp/patchbay-test-XXXXXX";

static inline int make_dir(void **unused)
{
	return mkdtemp(dir) ? 0 : -1;
}

static inline int remove_dir(void **unused)
{
	char command[sizeof(dir) + 16];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}
#endif
