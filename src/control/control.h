/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads and writes control files for all clients. This library also has the table of control files,
 * and checks values. All clients use these functions, so two clients can't disagree about a file.
 *
 * Context: an observer's ordinary thread. No locks, no global state. Texts come from users or
 * files, and are not trusted. The parsers are fuzzed (tests/fuzz/fuzz_control.c).
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
	unsigned mode;			/* PB_CONTROL_R, PB_CONTROL_W or PB_CONTROL_RW */
	enum pb_control_type type;
	uint32_t most;			/* the largest valid number */
	const char *summary;
};

const struct pb_control_info *pb_control_info(enum pb_control_file file);
/* Finds the control file with this path, which may begin with "tracing/". Returns
 * PB_NR_CONTROL_FILES if there is no such file. */
enum pb_control_file pb_control_find(const char *path);

/* --- values --- */

/*
 * One pattern of a write. The syntax is the kernel's. White space separates patterns. If a pattern
 * begins with '!', the write removes the matching functions from the file. "PAT:mod:GLOB" means
 * only functions of modules that match GLOB. Any other "PAT:COMMAND" is an error.
 */
struct pb_control_pattern {
	const char *text;		/* not NUL-terminated */
	size_t text_len;
	const char *module;		/* NULL: any module */
	size_t module_len;
	bool remove;
};

/* Parses the next pattern of *p, and moves *p past it. Returns 1 for a pattern and 0 at the end.
 * Returns -EINVAL if the next word is malformed: it is only "!", has an unknown command, or has no
 * module after ":mod:". err then says why. */
int pb_control_pattern_next(const char **p, struct pb_control_pattern *out,
			    char *err, size_t errlen);

/* Reads a decimal number in [0, max]. The number may have white space around it. Returns 0 or
 * -EINVAL. */
int pb_control_parse_u64(const char *text, uint64_t max, uint64_t *out);

/* Reads a duration, and stores it in nanoseconds. The number may have decimals. The unit is ns, us,
 * ms or s, which may be written as nsec, usec, msec or sec. A number without a unit is in us.
 * Returns 0 or -EINVAL. */
int pb_control_parse_duration(const char *text, uint64_t *ns);
/* Returns the value in the form that the agent reads: a number without blanks, or a duration in
 * microseconds without a unit. Other values, and malformed values, are returned as they are. The
 * result is `value` or buf. */
const char *pb_control_plain(enum pb_control_file file, const char *value, char *buf, size_t len);
/* Formats a duration for tracing_thresh: in microseconds, with decimals if needed. */
void pb_control_format_us(uint64_t ns, char *buf, size_t len);

/* Checks whether `value` may be written to `file`. Checks neither names of functions nor values of
 * the type TEXT: the file's owner does. Returns 0, -EINVAL, -EACCES (read-only) or -ENOENT (no such
 * file). After -EINVAL or -EACCES, err has the reason in one line. */
int pb_control_validate(enum pb_control_file file, const char *value, bool append,
			char *err, size_t errlen);

/* --- writes to be sent together (abi/messages.h, struct pb_msg_welcome) --- */

struct pb_control_writes {
	char *buf;			/* for each write, "PATH\0OP\0VALUE\0" */
	size_t len;
	uint32_t nr;
	uint32_t written;		/* a bit for each file that has a write with OP '>' */
};

/* Adds a write. The first write to a file replaces the file's value. Later writes to the file add
 * to the value. Returns 0 or -ENOMEM. Returns -EMSGSIZE if a message would have no room for all
 * writes. */
int pb_control_writes_add(struct pb_control_writes *w, enum pb_control_file file,
			  const char *value);
/* Calls fn for each write of a message. If fn returns a nonzero value, stops and returns this
 * value. Returns -EPROTO if the message is malformed. */
int pb_control_writes_each(const char *buf, size_t len, uint32_t nr,
			   int (*fn)(void *arg, const char *path, bool append, const char *value),
			   void *arg);
void pb_control_writes_free(struct pb_control_writes *w);

/* --- a running program, through the recorder's `control` socket --- */

struct pb_control;			/* a connection */

/* Connects to the recorder of a session, for one of its processes. pid 0: the session's first
 * process. Returns 0 or -errno. After an error, err has a text, which begins with the socket's
 * path. -ESRCH: the session has no such process, or none that is ready. */
int pb_control_open(struct pb_control **c, const char *socket_path, uint32_t pid,
		    char *err, size_t errlen);
/* pb_control_write() and pb_control_read() write and read a control file. They return 0 or -errno.
 * After an error, err has a text. pb_control_read() reads the whole file, and NUL-terminates the
 * text. The caller frees *out. If the process doesn't answer within 60 s, the functions return
 * -ETIMEDOUT, and the connection is of no more use: each further request fails at once. After
 * pb_control_wait_less(), they wait for 10 s. */
void pb_control_wait_less(struct pb_control *c);
int pb_control_write(struct pb_control *c, const char *path, const char *value, bool append,
		     char *err, size_t errlen);
int pb_control_read(struct pb_control *c, const char *path, char **out, size_t *len,
		    char *err, size_t errlen);
/* Asks the recorder to detach all processes of the session, and waits until the recorder has ended
 * the recording. After that, `text` has a line that says what became of the process. */
int pb_control_detach(struct pb_control *c, char *text, size_t len, char *err, size_t errlen);
/* Asks the recorder for its description of the recording (abi/messages.h). */
struct pb_msg_status;
int pb_control_status(struct pb_control *c, struct pb_msg_status *out, char *err, size_t errlen);
/* Gets read-only descriptors of the session's ring and of its data directory, which the caller
 * closes. */
struct pb_msg_ring;
int pb_control_memory(struct pb_control *c, struct pb_msg_ring *ring, int *ring_fd, int *data_fd,
		      char *err, size_t errlen);
/* Return the PID of the process that the connection is for, as the recorder sees it, the number of
 * the process's image, and the PID of its recorder. */
uint32_t pb_control_pid(const struct pb_control *c);
uint32_t pb_control_image(const struct pb_control *c);
uint32_t pb_control_recorder(const struct pb_control *c);
void pb_control_close(struct pb_control *c);
#endif
