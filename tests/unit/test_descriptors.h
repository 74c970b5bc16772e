/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For tests of what happens while this process can open no file. */
#ifndef PB_TEST_DESCRIPTORS_H
#define PB_TEST_DESCRIPTORS_H
#include <fcntl.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <unistd.h>

/* Leaves this process `nr` free descriptors. */
static inline void leave_descriptors(struct rlimit *all, unsigned nr)
{
	struct rlimit few;
	int fd = open("/dev/null", O_RDONLY);

	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, all), 0);
	few = (struct rlimit){ (rlim_t)fd + nr, all->rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
}

/* Takes all free descriptors away from this process, or gives them back. */
static inline void set_descriptors(bool any)
{
	static struct rlimit all;

	if (any)
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &all), 0);
	else
		leave_descriptors(&all, 0);
}
#endif
