/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of control files. This file also packs writes of control files into a message, and
 * unpacks them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi/messages.h"
#include "control/control.h"

#define AGENT	 PB_OWNER_AGENT
#define OBSERVER PB_OWNER_OBSERVER
#define R	 PB_CONTROL_R
#define RW	 PB_CONTROL_RW
static const struct pb_control_info table[] = {
#define X(path, id, owner, mode, type, most, text) \
	{ path, owner, mode, PB_CONTROL_##type, most, text },
	PB_CONTROL_FILES(X)
#undef X
};
#undef AGENT
#undef OBSERVER
#undef R
#undef RW

_Static_assert(PB_NR_CONTROL_FILES <= 32, "pb_control_writes.written has a bit for each");

const struct pb_control_info *pb_control_info(enum pb_control_file file)
{
	return (unsigned)file < PB_NR_CONTROL_FILES ? &table[file] : NULL;
}

enum pb_control_file pb_control_find(const char *path)
{
	if (!strncmp(path, "tracing/", 8))
		path += 8;
	for (unsigned i = 0; i < PB_NR_CONTROL_FILES; i++)
		if (!strcmp(table[i].path, path))
			return (enum pb_control_file)i;
	return PB_NR_CONTROL_FILES;
}

static void put(struct pb_control_writes *w, const char *text)
{
	size_t n = strlen(text) + 1;

	memcpy(w->buf + w->len, text, n);
	w->len += n;
}

int pb_control_writes_add(struct pb_control_writes *w, enum pb_control_file file,
			  const char *value)
{
	const char *op = w->written & 1u << file ? ">>" : ">";
	size_t n = strlen(table[file].path) + strlen(op) + strlen(value) + 3;

	if (w->len + n > PB_MSG_MAX - sizeof(struct pb_msg_welcome))
		return -EMSGSIZE;
	char *buf = realloc(w->buf, w->len + n);
	if (!buf)
		return -ENOMEM;
	w->buf = buf;
	put(w, table[file].path);
	put(w, op);
	put(w, value);
	w->written |= 1u << file;
	w->nr++;
	return 0;
}

/* Returns the string at *p, and moves *p past the string. Returns NULL if the string doesn't end
 * before `end`. */
static const char *take(const char **p, const char *end)
{
	const char *s = *p, *nul = memchr(s, 0, (size_t)(end - s));

	if (!nul)
		return NULL;
	*p = nul + 1;
	return s;
}

int pb_control_writes_each(const char *buf, size_t len, uint32_t nr,
			   int (*fn)(void *arg, const char *path, bool append, const char *value),
			   void *arg)
{
	const char *p = buf, *end = buf + len;

	for (uint32_t i = 0; i < nr; i++) {
		const char *path = len ? take(&p, end) : NULL;
		const char *op = path ? take(&p, end) : NULL;
		const char *value = op ? take(&p, end) : NULL;
		bool append;

		if (!value)
			return -EPROTO;
		append = !strcmp(op, ">>");
		if (!append && strcmp(op, ">"))
			return -EPROTO;
		int ret = fn(arg, path, append, value);
		if (ret)
			return ret;
	}
	return p == end ? 0 : -EPROTO;
}

void pb_control_writes_free(struct pb_control_writes *w)
{
	free(w->buf);
	*w = (struct pb_control_writes){ 0 };
}
