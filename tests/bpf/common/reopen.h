/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Opens a map's file once more in a test. The test then has a second open file description, as
 * another process would have. */
#ifndef PB_TESTS_BPF_REOPEN_H
#define PB_TESTS_BPF_REOPEN_H
#include <fcntl.h>
#include <stdio.h>

/* Opens the file of a descriptor once more, for reading and writing. */
static inline int reopen(int fd)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_RDWR | O_CLOEXEC);
}
#endif
