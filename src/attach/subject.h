/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The process that the agent is brought into: its name, its memory and its mappings. Also the
 * user's line, which says what is wrong with the process. All data that is read here comes from a
 * process that may be hostile. Context: the injector's thread.
 */
#ifndef PB_ATTACH_SUBJECT_H
#define PB_ATTACH_SUBJECT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "recorder/proc.h"

#define ATTACH_PATH 4096

/* Addresses in the process. */
struct attach_range {
	uint64_t start, end;
};

static inline bool attach_in(const struct attach_range *r, uint64_t addr)
{
	return addr - r->start < r->end - r->start;
}

struct attach_subject {
	pid_t pid;
	char name[32];			/* as /proc/PID/comm has it, without control characters */
	const char *agent, *session;
	bool children;			/* its children are traced, too, and need both paths */
	bool handed;			/* it gets descriptors in place of the paths agent and
					 * session (hand_over.h) */
	unsigned uid;			/* its user, for access to files */
	int mem;			/* /proc/PID/mem, or -1. It stays bound to the memory of the
					 * program that ran when it was opened: after an exec, all
					 * reads and writes fail */
	struct record_map *maps;	/* sorted by address */
	size_t nr_maps;
	uint64_t files;			/* a hash of the mappings of files */
	bool by_helper;			/* the helper of an agent traces the thread that was looked
					 * at last. It stops the threads for a moment */
	char *err;			/* the user's line */
	size_t err_size;
};

void attach_subject_init(struct attach_subject *s, pid_t pid, char *err, size_t size);
void attach_subject_free(struct attach_subject *s);

/* Writes "NAME (PID) " and the text to the user's line. Returns -error. */
int attach_say(struct attach_subject *s, int error, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Reads the file /proc/PID/NAME into buf, and NUL-terminates the text. A longer text is cut.
 * Returns the length or -errno. */
ssize_t attach_proc_read(const struct attach_subject *s, const char *name, char *buf, size_t size);
/* Writes to the user's line that the process ended, or executed another program, during the attach.
 * Returns -ESRCH. */
int attach_say_gone(struct attach_subject *s);
/* Reads the target of the link /proc/PID/NAME. Returns 0 or -errno. */
int attach_proc_link(const struct attach_subject *s, const char *name, char *buf, size_t size);

/* The next two functions return 0 if all bytes were copied, else -EFAULT. Writes ignore the
 * protection of pages. */
int attach_mem_read(const struct attach_subject *s, uint64_t at, void *buf, size_t size);
int attach_mem_write(const struct attach_subject *s, uint64_t at, const void *buf, size_t size);

/* Reads the mappings again. Returns 0 or -errno. */
int attach_maps_read(struct attach_subject *s);
/* Whether the process has ended, or has executed another program, since its memory was opened. */
bool attach_image_is_gone(const struct attach_subject *s);
/* Waits for this at most ns nanoseconds. Returns whether it has happened. */
bool attach_image_goes(const struct attach_subject *s, uint64_t ns);
const struct record_map *attach_map_at(const struct attach_subject *s, uint64_t addr);
#endif
