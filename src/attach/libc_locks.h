/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which code may hold a lock that pthread_create() takes: functions of libc, and the allocator that
 * malloc() belongs to. Context: the injector's thread.
 */
#ifndef PB_ATTACH_LIBC_LOCKS_H
#define PB_ATTACH_LIBC_LOCKS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "attach/subject.h"
#include "module/elf/elf_file.h"

/* What a call of a libc function means for a thread that is in the call. */
enum attach_function_kind {
	ATTACH_HARMLESS,	/* it holds none of the locks that pthread_create() takes */
	ATTACH_UNSURE,		/* it may hold one, or nothing is known of it */
	ATTACH_LOCKING,		/* it may wait while it holds one */
};

/* An exported function of libc. */
struct attach_function {
	uint64_t start, end;
	enum attach_function_kind kind;
};

struct attach_locks {
	struct attach_function *functions;	/* sorted by address, without overlaps */
	size_t nr_functions;
	/* Only if malloc() isn't libc's. allocator: the code of the library that has malloc();
	 * exe_allocates: the executable has malloc() */
	struct attach_range allocator;
	bool exe_allocates;
	bool thread_sanitizer;	/* malloc() is that of ThreadSanitizer */
};

/* Lists the exported functions of libc, and finds the allocator. e: libc's file; base: where the
 * file's first byte is mapped; text: libc's code. Returns 0 or -ENOMEM. */
int attach_locks_find(struct attach_locks *l, const struct attach_subject *s, struct pb_elf *e,
		      uint64_t base, const struct attach_range *text);
void attach_locks_free(struct attach_locks *l);
/* Returns the kind of the exported function of libc whose code the address is in, or ATTACH_UNSURE
 * if there is no such function. */
enum attach_function_kind attach_locks_kind(const struct attach_locks *l, uint64_t addr);
#endif
