/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The control tree's client library: the table of control files, the checks of their values, and
 * how they are written and read. All clients use these functions, so that they can't disagree.
 *
 * Context: an observer's ordinary thread. No locks, no global state. Every
 * text is untrusted (a user's, or a file's): the parsers are fuzzed
 * (tests/fuzz/fuzz_control.c).
 */
#ifndef PB_CONTROL_H
#define PB_CONTROL_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "abi/control_files.h"

/* --- the table --- */

enum pb_control_owner { PB_OWNER_AGENT, PB_OWNER_OBSERVER };
#define PB_CONTROL_R	1
#define PB_CONTROL_W	2
#define PB_CONTROL_RW	3

struct pb_control_info {
	const char *path;		/* relative to tracing/ */
	enum pb_control_owner owner;
	unsigned mode;			/* PB_CONTROL_R, W, RW */
	enum pb_control_type type;
	uint32_t most;			/* the largest number that is valid */
	const char *summary;
};

const struct pb_control_info *pb_control_info(enum pb_control_file file);
/* A leading "tracing/" is allowed. PB_NR_CONTROL_FILES: there is no such file. */
enum pb_control_file pb_control_find(const char *path);

/* --- values --- */

/*
 * One pattern of a write, with the kernel's syntax. Patterns are separated by white space. A
 * leading '!' removes the functions that match. "PAT:mod:GLOB" means only functions of modules that
 * match GLOB. Any other "PAT:COMMAND" is an error.
 */
struct pb_control_pattern {
	const char *text;		/* not NUL-terminated */
	size_t text_len;
	const char *module;		/* NULL: any */
	size_t module_len;
	bool remove;
};

/* Cuts the next pattern off *p. 1: there is one, 0: the end, -EINVAL: *p is not
 * a pattern (empty one, empty module, unknown command); err says why. */
int pb_control_pattern_next(const char **p, struct pb_control_pattern *out,
			    char *err, size_t errlen);

/* Reads a decimal, hex (0x) or octal number in [0, max], which may have white space around it. */
int pb_control_parse_u64(const char *text, uint64_t max, uint64_t *out);

/* Reads a duration with unit ns, us, ms or s (none: us) and decimals allowed, as nanoseconds. */
int pb_control_parse_duration(const char *text, uint64_t *ns);
/* Formats a duration as tracing_thresh takes it: microseconds, with decimals if needed. */
void pb_control_format_us(uint64_t ns, char *buf, size_t len);

/* May `value` be written to `file`? Does not check names of functions; the agent does. Returns 0,
 * or -EINVAL, -EACCES (read-only) or -ENOTSUP with the reason in err, in one line. */
int pb_control_validate(enum pb_control_file file, const char *value, bool append,
			char *err, size_t errlen);

/* --- writes to be sent together (abi/messages.h, struct pb_msg_welcome) --- */

struct pb_control_writes {
	char *buf;			/* for each write, "PATH\0OP\0VALUE\0" */
	size_t len;
	uint32_t nr;
	uint32_t written;		/* a bit for each file whose value a write has replaced (OP
					 * '>') */
};

/* Adds a write. The first write to a file replaces its value, the next ones add to it. Returns 0,
 * -ENOMEM, or -EMSGSIZE if all writes together would not fit into a message. */
int pb_control_writes_add(struct pb_control_writes *w, enum pb_control_file file,
			  const char *value);
/* Calls fn for each write of a message; stops at the first nonzero result and returns it. -EPROTO:
 * the message isn't well-formed. */
int pb_control_writes_each(const char *buf, size_t len, uint32_t nr,
			   int (*fn)(void *arg, const char *path, bool append, const char *value),
			   void *arg);
void pb_control_writes_free(struct pb_control_writes *w);

/* --- a running program, through the recorder's `control` socket --- */

struct pb_control;			/* a connection */

/* Connects. pid 0: the session's first process. Returns 0, or -errno with a text in err. */
int pb_control_open(struct pb_control **c, const char *socket_path, uint32_t pid,
		    char *err, size_t errlen);
int pb_control_write(struct pb_control *c, const char *path, const char *value, bool append,
		     char *err, size_t errlen);
/* Reads the whole file, NUL-terminated; the caller frees *out. */
int pb_control_read(struct pb_control *c, const char *path, char **out, size_t *len,
		    char *err, size_t errlen);
void pb_control_close(struct pb_control *c);
#endif
