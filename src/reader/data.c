/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "reader/data.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "reader/symbols.h"

#define MAX_NOTES 64

void pb_data_note(struct pb_data *d, const char *fmt, ...)
{
	char **notes, *text;
	va_list args;
	int n;

	if (d->nr_notes >= MAX_NOTES)
		return;
	va_start(args, fmt);
	n = vasprintf(&text, fmt, args);
	va_end(args);
	if (n < 0)
		return;
	for (char *p = text; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 127)
			*p = ' ';
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
		snprintf(err, errlen, "%s/%s: not a file; is this a Patchbay data directory?", d->dir,
			 name);
		return -EINVAL;
	}
	if (pread(fd, &h, sizeof(h), 0) != sizeof(h)) {
		snprintf(err, errlen, "%s/%s: cut off before its header; nothing was recorded, "
			 "record again", d->dir, name);
		return -ENODATA;
	}
	if (h.magic != magic) {
		snprintf(err, errlen, "%s/%s: not written by Patchbay; give its data directory with -d",
			 d->dir, name);
		return -EINVAL;
	}
	if (h.version != PB_DATA_VERSION) {
		snprintf(err, errlen, "%s: written in format %u, this patchbay reads format %u; use the "
			 "version that recorded it", d->dir, h.version, PB_DATA_VERSION);
		return -EPROTO;
	}
	return 0;
}

static int open_files(struct pb_data *d, char *err, size_t errlen)
{
	struct stat st;
	int ret;

	d->dir_fd = open(d->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (d->dir_fd < 0) {
		ret = -errno;
		if (ret == -ENOENT)
			snprintf(err, errlen, "%s: no such directory; record first, or give it with -d",
				 d->dir);
		else
			snprintf(err, errlen, "%s: can't open it: %s", d->dir, strerror(-ret));
		return ret;
	}
	d->chunks_fd = openat(d->dir_fd, "chunks", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (d->chunks_fd < 0) {
		ret = -errno;
		snprintf(err, errlen, "%s: holds no readable chunks file (%s); is it a Patchbay data "
			 "directory?", d->dir, strerror(-ret));
		return ret;
	}
	ret = pb_data_check_header(d, "chunks", d->chunks_fd, PB_DATA_MAGIC_CHUNKS, err, errlen);
	if (ret)
		return ret;
	if (fstat(d->chunks_fd, &st))
		return -errno;
	d->chunks_size = (uint64_t)st.st_size;
	return 0;
}

static int check_buffer(struct pb_data *d, char *err, size_t errlen)
{
	char known[200] = "0";

	for (size_t i = 0; i < d->nr_buffers; i++) {
		const struct pb_buffer *b = &d->buffers[i];
		size_t len = strlen(known);

		if (b->id == d->buffer)
			continue;
		if (b->id)
			snprintf(known + len, sizeof(known) - len, ", %u", b->id);
		if (!d->buffer)
			pb_data_note(d, "buffer %u has %llu chunk%s more: --buffer=%u shows it", b->id,
				     (unsigned long long)b->chunks, b->chunks == 1 ? "" : "s", b->id);
	}
	if (!d->buffer || d->nr_chunks)
		return 0;
	snprintf(err, errlen, "%s: has no buffer %u; there %s %s", d->dir, d->buffer,
		 strchr(known, ',') ? "are" : "is", known);
	return -ENOENT;
}

struct pb_data *pb_data_open(const char *dir, uint32_t buffer, char *err, size_t errlen)
{
	struct pb_data *d = calloc(1, sizeof(*d));
	int ret = -ENOMEM;

	snprintf(err, errlen, "%s: out of memory", dir);
	if (!d)
		return NULL;
	d->dir_fd = d->chunks_fd = -1;
	d->buffer = buffer;
	d->dir = strdup(dir);
	if (!d->dir)
		goto fail;
	ret = open_files(d, err, errlen);
	if (!ret)
		ret = pb_data_load_meta(d, err, errlen);
	if (!ret)
		ret = pb_data_load_index(d, err, errlen);
	if (!ret)
		ret = check_buffer(d, err, errlen);
	if (ret)
		goto fail;
	d->symbols = pb_symbols_new(d);
	if (!d->symbols)
		goto fail;
	if (d->clock.uncalibrated && d->nr_chunks)
		pb_data_note(d, "the clock was read only once: times are in TSC cycles, not nanoseconds");
	if (!d->ended && !d->damaged)
		pb_data_note(d, "the recording didn't end in order (the recorder was killed, or still "
			     "runs): this is what it left");
	return d;
fail:
	pb_data_close(d);
	return NULL;
}

void pb_data_close(struct pb_data *d)
{
	if (!d)
		return;
	pb_symbols_free(d->symbols);
	pb_clock_free(&d->clock);
	for (size_t i = 0; i < d->nr_images; i++)
		free(d->images[i].path);
	for (size_t i = 0; i < d->nr_maps; i++)
		free(d->maps[i].path);
	for (size_t i = 0; i < d->nr_notes; i++)
		free(d->notes[i]);
	free(d->notes);
	free(d->images);
	free(d->maps);
	free(d->exits);
	free(d->threads);
	free(d->chunks);
	free(d->buffers);
	free(d->session);
	if (d->chunks_fd >= 0)
		close(d->chunks_fd);
	if (d->dir_fd >= 0)
		close(d->dir_fd);
	free(d->dir);
	free(d);
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

struct pb_thread *pb_data_thread(const struct pb_data *d, uint32_t serial)
{
	size_t low = 0, high = d->nr_threads;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (d->threads[mid].serial < serial)
			low = mid + 1;
		else
			high = mid;
	}
	return low < d->nr_threads && d->threads[low].serial == serial ? &d->threads[low] : NULL;
}

size_t pb_data_image(const struct pb_data *d, uint32_t image)
{
	size_t low = 1, high = d->nr_images;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (d->images[mid].image < image)
			low = mid + 1;
		else
			high = mid;
	}
	return low < d->nr_images && d->images[low].image == image ? low : 0;
}
