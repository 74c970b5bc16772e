/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finds the shared libraries that ld.so would load with a program, without running any code of the
 * program. The search follows DT_NEEDED, and looks where ld.so does: DT_RPATH or DT_RUNPATH
 * ($ORIGIN), LD_LIBRARY_PATH, the directories of /etc/ld.so.conf, and the system's directories. The
 * result is still a guess, because the search ignores hwcaps, ld.so's cache and LD_PRELOAD. It also
 * ignores DT_RPATH of all files except the one that names the library.
 *
 * Context: any ordinary thread.
 */
#ifndef PB_MODULE_NEEDED_H
#define PB_MODULE_NEEDED_H

struct pb_needed_ops {
	void (*found)(void *arg, const char *path);	/* called for each library, in the order of
							 * loading */
	void (*missing)(void *arg, const char *name, const char *needed_by);
};

/* Finds the libraries of the program at `path`; the program itself isn't reported. Returns 0,
 * -ENOMEM, or the error of opening the program. */
int pb_module_needed(const char *path, const struct pb_needed_ops *ops, void *arg);
#endif
