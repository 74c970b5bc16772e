/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The control tree's client library: which files there are, which values they
 * take, and how writes and reads travel. The CLI, and later the FUSE mount and
 * the C API, use the same functions, so that they can't disagree.
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
	uint32_t most;			/* of a number */
	const char *summary;
};

const struct pb_control_info *pb_control_info(enum pb_control_file file);
/* A leading "tracing/" is allowed. PB_NR_CONTROL_FILES if there is none. */
enum pb_control_file pb_control_find(const char *path);

/* --- values --- */

/*
 * One write, cut up as the kernel does: a leading '!' removes, "PAT:mod:GLOB"
 * confines to modules, "PAT:COMMAND..." is anything else after a colon (not
 * taken yet). Patterns are separated by white space; each is one element.
 */
struct pb_control_pattern {
	const char *text;		/* not terminated: text_len */
	size_t text_len;
	const char *module;		/* NULL: any */
	size_t module_len;
	bool remove;
};

/* Cuts the next pattern off *p. 1: there is one, 0: the end, -EINVAL: *p is not
 * a pattern (empty one, empty module, unknown command); err says why. */
int pb_control_pattern_next(const char **p, struct pb_control_pattern *out,
			    char *err, size_t errlen);

/* A decimal, hex (0x) or octal number within [0, max]; white space around. */
int pb_control_parse_u64(const char *text, uint64_t max, uint64_t *out);

/* A duration with ns, us, ms, s (none: us) as nanoseconds; decimals allowed. */
int pb_control_parse_duration(const char *text, uint64_t *ns);
/* The shape that tracing_thresh takes: microseconds, with decimals if needed. */
void pb_control_format_us(uint64_t ns, char *buf, size_t len);

/* Whether `value` may be written to `file` at all (the agent decides on names).
 * 0 or -EINVAL, -EACCES (read-only), -ENOTSUP; err says why in one line. */
int pb_control_validate(enum pb_control_file file, const char *value, bool append,
			char *err, size_t errlen);

/* --- writes to be sent together (abi/messages.h, struct pb_msg_welcome) --- */

struct pb_control_writes {
	char *buf;			/* "PATH\0OP\0VALUE\0" each */
	size_t len;
	uint32_t nr;
	uint32_t written;		/* bit per file: it has had its '>' */
};

/* Adds a write; the first to a file replaces, the next ones add. 0, -ENOMEM, or
 * -EMSGSIZE when the whole would not fit a message. */
int pb_control_writes_add(struct pb_control_writes *w, enum pb_control_file file,
			  const char *value);
/* Calls fn for each; stops at the first nonzero result and returns it. A body
 * that isn't well-formed gives -EPROTO. */
int pb_control_writes_each(const char *buf, size_t len, uint32_t nr,
			   int (*fn)(void *arg, const char *path, bool append, const char *value),
			   void *arg);
void pb_control_writes_free(struct pb_control_writes *w);

/* --- a running target, through the recorder's `control` socket --- */

struct pb_control;			/* a connection */

/* pid 0: the session's first process. -errno, with a text in err. */
int pb_control_open(struct pb_control **c, const char *socket_path, uint32_t pid,
		    char *err, size_t errlen);
int pb_control_write(struct pb_control *c, const char *path, const char *value, bool append,
		     char *err, size_t errlen);
/* The whole file, NUL-terminated, to be freed. */
int pb_control_read(struct pb_control *c, const char *path, char **out, size_t *len,
		    char *err, size_t errlen);
void pb_control_close(struct pb_control *c);
#endif
