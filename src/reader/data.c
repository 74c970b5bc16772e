/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Looks up threads, images and values of the session, and keeps the directory's notes. */
#include "reader/data.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clean_text.h"

void pb_data_note(struct pb_data *d, const char *fmt, ...)
{
	char **notes, *text;
	va_list args;
	int n;

	va_start(args, fmt);
	n = vasprintf(&text, fmt, args);
	va_end(args);
	if (n < 0)
		return;
	pb_text_clean(text, ' ', 0);
	for (size_t i = 0; i < d->nr_notes; i++)
		if (!strcmp(d->notes[i], text)) {
			free(text);
			return;
		}
	notes = realloc(d->notes, (d->nr_notes + 1) * sizeof(*notes));
	if (!notes) {
		free(text);
		return;
	}
	d->notes = notes;
	notes[d->nr_notes++] = text;
}

int pb_data_check_header(const struct pb_data *d, const char *name, int fd, uint64_t magic,
			 char *err, size_t errlen)
{
	struct pb_data_header h;
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		snprintf(err, errlen, "%s/%s: not a file; is this a Patchbay data directory?",
			 d->dir, name);
		return -EINVAL;
	}
	if (pread(fd, &h, sizeof(h), 0) != sizeof(h)) {
		snprintf(err, errlen, "%s/%s: cut off before its header; nothing was recorded, "
			 "record again", d->dir, name);
		return -ENODATA;
	}
	if (h.magic != magic) {
		snprintf(err, errlen,
			 "%s/%s: not written by Patchbay; give a Patchbay data directory with -d",
			 d->dir, name);
		return -EINVAL;
	}
	if (h.version != PB_DATA_VERSION) {
		snprintf(err, errlen,
			 "%s: written in format %u, this patchbay reads format %u; use the "
			 "version that recorded it", d->dir, h.version, PB_DATA_VERSION);
		return -EPROTO;
	}
	return 0;
}

bool pb_data_session(const struct pb_data *d, const char *key, char *buf, size_t len)
{
	size_t n = strlen(key);
	const char *line = d->session ? d->session : "";

	*buf = 0;
	while (*line) {
		size_t end = strcspn(line, "\n");

		if (end > n && !strncmp(line, key, n) && line[n] == '=') {
			snprintf(buf, len, "%.*s", (int)(end - n - 1), line + n + 1);
			return true;
		}
		line += end + (line[end] == '\n');
	}
	return false;
}

bool pb_data_is_function_tracer(const struct pb_data *d)
{
	char tracer[32];

	return pb_data_session(d, "tracer", tracer, sizeof(tracer)) && !strcmp(tracer, "function");
}

bool pb_data_has_times(const struct pb_data *d)
{
	return !d->clock.none && !pb_data_is_function_tracer(d);
}

struct pb_thread *pb_data_thread(const struct pb_data *d, uint32_t serial)
{
	size_t at = pb_bisect(i, 0, d->nr_threads, d->threads[i].serial < serial);

	return at < d->nr_threads && d->threads[at].serial == serial ? &d->threads[at] : NULL;
}

size_t pb_data_image(const struct pb_data *d, uint32_t image)
{
	size_t at = pb_bisect(i, 1, d->nr_images, d->images[i].image < image);

	return at < d->nr_images && d->images[at].image == image ? at : 0;
}

int pb_data_by_serial(const void *a, const void *b)
{
	const struct pb_thread *x = a, *y = b;

	return x->serial < y->serial ? -1 : x->serial > y->serial;
}
