/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads and writes the agent's control files: at the start for the user's options, later for
 * messages of the recorder. abi/control_files.h has the table of their names and limits. The part
 * of the engine that owns a control file registers its functions here. A read generates the file's
 * text from the beginning, and keeps the bytes that the caller asked for.
 */
#include <asm/errno.h>
#include <sys/mman.h>
#include "engine/files.h"
#include "base/base.h"
#include "base/mem.h"
#include "base/pages.h"
#include "base/sys.h"

static const struct { const char *path; uint8_t type; uint32_t most; } table[] = {
#define X(path, id, owner, mode, type, most, text) { path, PB_CONTROL_##type, most },
	PB_CONTROL_FILES(X)
#undef X
};
static struct pb_file files[PB_NR_CONTROL_FILES];
const char *pb_file_error;
bool pb_file_options;

void pb_file_register(enum pb_control_file id, const struct pb_file *file)
{
	files[id] = *file;
}

static struct pb_file *find(const char *path)
{
	for (size_t i = 0; i < pb_array_size(table); i++)
		if (pb_streq(path, table[i].path))
			return &files[i];
	return NULL;
}

void pb_seq_us(struct pb_seq *s, uint64_t ns)
{
	uint64_t part = ns % 1000;

	pb_seq_u64(s, ns / 1000);
	if (part)
		pb_seq_puts(s, ".");
	for (uint64_t scale = 100; part; part %= scale, scale /= 10)
		pb_seq_u64(s, part / scale);
}

int pb_parse_us(char *text, uint64_t *ns)
{
	uint64_t scale = 100;
	char *dot = text;
	int64_t us;

	*ns = 0;
	while (*dot && *dot != '.')
		dot++;
	if (*dot == '.') {
		*dot = 0;
		for (char *d = dot + 1; *d; d++, scale /= 10) {
			if (*d < '0' || *d > '9') {
				pb_file_error = "not a number of microseconds";
				return -EINVAL;
			}
			*ns += (uint64_t)(*d - '0') * scale;
		}
	}
	us = *text ? pb_parse_u64(text, strlen(text)) : 0;
	if (us < 0 || us > INT64_MAX / 1000 - 1) {
		pb_file_error = "not a number of microseconds";
		return -EINVAL;
	}
	*ns += (uint64_t)us * 1000;
	return 0;
}

long pb_file_read(const char *path, char *buf, size_t size, uint64_t offset)
{
	struct pb_seq s = { .buf = buf, .size = size, .offset = offset };
	struct pb_file *f = find(path);

	if (!f)
		return -ENOENT;
	if (!f->read && !f->word)
		return -EINVAL;
	if (f->read) {
		f->read(&s);
	} else {
		pb_seq_u64(&s, *f->word);
		pb_seq_puts(&s, "\n");
	}
	return (long)s.used;
}

static int write_word(const struct pb_file *f, const char *text, bool live)
{
	static char error[64];
	uint32_t most = table[f - files].most, before = *f->word;
	int64_t n = pb_parse_u64(text, strlen(text));
	size_t at = 0;
	int err;

	if (n < 0 || n > most) {
		pb_put_str(error, sizeof(error), &at, "is not a number from 0 to ");
		pb_put_u64(error, sizeof(error), &at, most);
		pb_file_error = error;
		return -EINVAL;
	}
	*f->word = (uint32_t)n;
	err = f->changed ? f->changed(before, live) : 0;
	if (err) {
		*f->word = before;
		f->changed(before, live);
	}
	return err;
}

int pb_file_write(const char *path, char *text, bool append, bool live)
{
	struct pb_file *f = find(path);
	size_t n = strlen(text);

	pb_file_error = NULL;
	if (!f)
		return -ENOENT;
	if (!f->write && !f->word) {
		pb_file_error = "can't be written";
		return -EINVAL;
	}
	while (n && (text[n - 1] == '\n' || text[n - 1] == ' ' || text[n - 1] == '\t'))
		text[--n] = 0;
	return f->word ? write_word(f, text, live) : f->write(text, append, live);
}

void pb_seq_putn(struct pb_seq *s, const char *text, size_t n)
{
	uint64_t skip = s->offset > s->at ? s->offset - s->at : 0;

	s->at += n;
	if (skip >= n)
		return;
	n -= skip;
	if (n > s->size - s->used)
		n = s->size - s->used;
	memcpy(s->buf + s->used, text + skip, n);
	s->used += n;
}

void pb_seq_puts(struct pb_seq *s, const char *text)
{
	pb_seq_putn(s, text, strlen(text));
}

void pb_seq_u64(struct pb_seq *s, uint64_t v)
{
	char buf[24];
	size_t at = 0;

	pb_put_u64(buf, sizeof(buf), &at, v);
	pb_seq_putn(s, buf, at);
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n';
}

int pb_each_word(char *p, int (*fn)(char *word, void *arg), void *arg)
{
	while (*p) {
		char *word, end;
		int err;

		while (is_space(*p))
			p++;
		if (!*p)
			break;
		word = p;
		while (*p && !is_space(*p))
			p++;
		end = *p;
		*p = 0;
		err = fn(word, arg);
		if (err)
			return err;
		if (end)
			p++;
	}
	return 0;
}

void *pb_arena_alloc(size_t size)
{
	static uint8_t *arena;
	static size_t left;

	size = pb_align_up(size, 16);
	if (size > left) {
		size_t want = size > 1 << 20 ? pb_align_up(size, 4096) : 1 << 20;
		long p = pb_pages_map(0, want, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (pb_sys_failed(p))
			return NULL;
		arena = (uint8_t *)p;
		left = want;
	}
	left -= size;
	arena += size;
	return arena - size;
}

char *pb_arena_copy(const char *s, size_t n)
{
	char *copy = pb_arena_alloc(n + 1);

	if (copy) {
		memcpy(copy, s, n);
		copy[n] = 0;
	}
	return copy;
}
