/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The control files that the agent owns. Other parts of the engine register how each file is read
 * and written. Context: start or the agent's thread, one at a time. The loader's hook may also call
 * pb_arena_alloc(), with the lock of the text (text.h).
 */
#ifndef PB_ENGINE_FILES_H
#define PB_ENGINE_FILES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "abi/control_files.h"

/* The result of a read: bytes [offset, offset + size) of the file's whole text. used: number of
 * bytes stored in buf. at: number of bytes of the text that have been generated. */
struct pb_seq {
	char *buf;
	size_t size, used;
	uint64_t offset, at;
};
void pb_seq_puts(struct pb_seq *s, const char *text);
void pb_seq_putn(struct pb_seq *s, const char *text, size_t n);
void pb_seq_u64(struct pb_seq *s, uint64_t v);
void pb_seq_us(struct pb_seq *s, uint64_t ns);	/* in microseconds, with decimals if needed */
/* Reads a number of microseconds, which may have decimals, as in the kernel. Changes `text`.
 * Returns 0 or -EINVAL. */
int pb_parse_us(char *text, uint64_t *ns);
/* True: all bytes that were asked for are there, so generators may stop. */
static inline bool pb_seq_full(const struct pb_seq *s)
{
	return s->used == s->size;
}

/* The reason why a write failed, as text for users. A write function that fails may set this
 * variable. NULL: it hasn't set the variable. */
extern const char *pb_file_error;
/* Set while the user's options are written at the start. Later, a write that selects no function is
 * probably a mistake. But the options are for all images and for modules that are loaded later, so
 * they may select no function yet. */
extern bool pb_file_options;

/*
 * A file consists of two functions, `read` and `write`. If the file's type is NUMBER, the file has
 * a word instead: files.c reads and writes the word, within the limit of abi/control_files.h.
 * live: the program already runs.
 */
struct pb_file {
	void (*read)(struct pb_seq *s);
	/* text: ends with NUL, without white space at the end. append: the write is a >>. Returns 0
	 * or -errno. */
	int (*write)(char *text, bool append, bool live);
	uint32_t *word;
	/* Called after the word got its new value; may be NULL. `before` is the old value. Returns
	 * 0 or -errno. After an error the word gets its old value again, and the function is called
	 * once more. */
	int (*changed)(uint32_t before, bool live);
};
void pb_file_register(enum pb_control_file id, const struct pb_file *file);

/* path is relative to tracing/. pb_file_read() returns the number of bytes or -errno.
 * pb_file_write() returns 0 or -errno. */
long pb_file_read(const char *path, char *buf, size_t size, uint64_t offset);
int pb_file_write(const char *path, char *text, bool append, bool live);

/* Calls fn for each word of `text`. Splits `text` at white space, and so changes it. If fn returns
 * an error, stops and returns this error. */
int pb_each_word(char *text, int (*fn)(char *word, void *arg), void *arg);
/* Returns memory that is never freed: zeros, aligned to 16. NULL: none is left. */
void *pb_arena_alloc(size_t size);
/* Returns a copy of the first n bytes of s, ended by NUL; or NULL. */
char *pb_arena_copy(const char *s, size_t n);
#endif
