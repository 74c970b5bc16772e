/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Is this process fit to be attached? (fit.h)
 */
#include "attach/fit.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int attach_fit(struct attach_subject *s)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)s->pid);
	s->mem = open(path, O_RDWR | O_CLOEXEC);
	if (s->mem < 0)
		return attach_say(s, errno, "can't be read: %s", strerror(errno));
	return attach_maps_read(s);
}
