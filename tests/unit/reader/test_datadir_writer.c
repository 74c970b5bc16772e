/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tests how data directories are made, renamed and removed while other recorders run
 * (src/reader/datadir_writer.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../test_dir.h"
#include "reader/datadir_writer.h"

static char data[64], old[80], away[80], text[5000];

static int names(void **state)
{
	snprintf(data, sizeof(data), "%s/data", dir);
	snprintf(old, sizeof(old), "%s.old", data);
	snprintf(away, sizeof(away), "%s/away", dir);
	return 0;
}

static bool exists(const char *path)
{
	return !access(path, F_OK);
}

/* Until the first recording is closed, no other recording takes its place. */
static void locked(void **state)
{
	struct pb_datadir a, b;

	assert_int_equal(pb_datadir_open(&a, data, text, sizeof(text)), 0);
	assert_int_equal(pb_datadir_open(&b, data, text, sizeof(text)), -EBUSY);
	assert_non_null(strstr(text, "a recording is being written to it"));
	assert_int_equal(pb_datadir_remove(data), -EBUSY);
	assert_false(exists(old));
	pb_datadir_close(&a);
	assert_int_equal(pb_datadir_open(&b, data, text, sizeof(text)), 0);
	assert_true(exists(old));
	/* the earlier recording gets its name back */
	pb_datadir_undo(&b);
	assert_true(exists(data));
	assert_false(exists(old));
	assert_int_equal(pb_datadir_remove(data), 0);
}

/* A recording that never began removes only its own directory: if its directory was renamed, DIR
 * may be another recording. */
static void undone(void **state)
{
	struct pb_datadir a, b;

	assert_int_equal(pb_datadir_open(&a, data, text, sizeof(text)), 0);
	assert_int_equal(rename(data, away), 0);
	assert_int_equal(pb_datadir_open(&b, data, text, sizeof(text)), 0);
	pb_datadir_undo(&a);
	assert_int_equal(pb_datadir_note(&b, "still here"), 0);
	assert_true(exists(data));
	snprintf(text, sizeof(text), "%s/meta", data);
	assert_true(exists(text));
	pb_datadir_close(&b);
	assert_int_equal(pb_datadir_remove(data), 0);
	assert_int_equal(pb_datadir_remove(away), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(locked, names),
		cmocka_unit_test_setup(undone, names),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
