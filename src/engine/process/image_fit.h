/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Looks at the file that an exec will start, to find out whether the agent can be loaded into the
 * new image.
 *
 * Context: a thread that is about to exec; also a vfork child. Makes only the system calls
 * newfstatat, openat, fstat, pread64 and close, because a seccomp filter may forbid others.
 */
#ifndef PB_ENGINE_PROCESS_IMAGE_FIT_H
#define PB_ENGINE_PROCESS_IMAGE_FIT_H
#include "base/first_library.h"

#define PB_IMAGE_FITS	-1
#define PB_IMAGE_FAILS	-2	/* there is no such file, so the exec will fail */

struct pb_image_fit {
	int kind;		/* PB_IMAGE_FITS, PB_IMAGE_FAILS, or the reason why the agent can't
				 * be loaded: PB_UNFIT_* (abi/ring.h) */
	const char *path;	/* the file that was judged: the exec's own, or an interpreter,
				 * whose name is in `script` */
	char first[PB_FIRST_MAX];	/* the library that must be preloaded before the agent,
					 * or "" */
	char script[256];
};

/* Judges the file that execveat() with these arguments would start; for a script, judges the
 * script's interpreter. The pointer `path` may be invalid. */
void pb_image_fit(struct pb_image_fit *f, int dir, const char *path, int flags);
#endif
