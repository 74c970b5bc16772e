/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads the auxiliary vector. Each call reads /proc/self/auxv again. */
#include <fcntl.h>
#include <stddef.h>
#include "base/auxv.h"
#include "base/sys.h"

uint64_t pb_auxv(uint64_t type, uint64_t if_unknown)
{
	struct { uint64_t type, value; } aux[64];
	long fd = pb_sys(SYS_openat, AT_FDCWD, "/proc/self/auxv", O_RDONLY | O_CLOEXEC, 0), n;

	if (pb_sys_failed(fd))
		return if_unknown;
	n = pb_sys(SYS_read, fd, aux, sizeof(aux));
	pb_sys(SYS_close, fd);
	for (long i = 0; i < n / (long)sizeof(aux[0]); i++)
		if (aux[i].type == type)
			return aux[i].value;
	return if_unknown;
}
