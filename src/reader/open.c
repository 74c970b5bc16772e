/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Opens a data directory: opens its files, loads their contents, and adds notes. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "reader/data.h"
#include "reader/site_names.h"

#define BUFFER_NOTES 64		/* limit of the notes about other buffers */

static int open_files(struct pb_data *d, char *err, size_t errlen)
{
	struct stat st;
	int ret;

	d->dir_fd = open(d->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (d->dir_fd < 0) {
		ret = -errno;
		if (ret == -ENOENT)
			snprintf(err, errlen,
				 "%s: no such directory; record first, or give it with -d", d->dir);
		else
			snprintf(err, errlen, "%s: can't open it: %s", d->dir, strerror(-ret));
		return ret;
	}
	d->chunks_fd = openat(d->dir_fd, "chunks", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (d->chunks_fd < 0) {
		ret = -errno;
		snprintf(err, errlen,
			 "%s: holds no readable chunks file (%s); is it a Patchbay data "
			 "directory?", d->dir, strerror(-ret));
		return ret;
	}
	ret = pb_data_check_header(d, "chunks", d->chunks_fd, PB_DATA_MAGIC_CHUNKS, err, errlen);
	if (ret)
		return ret;
	d->open_fd = openat(d->dir_fd, "open", O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	if (d->open_fd < 0 && pb_data_may_pass(-errno)) {
		ret = -errno;
		snprintf(err, errlen, "%s/open: %s", d->dir, strerror(-ret));
		return ret;
	}
	if (fstat(d->chunks_fd, &st)) {
		ret = -errno;
		snprintf(err, errlen, "%s/chunks: %s", d->dir, strerror(-ret));
		return ret;
	}
	d->chunks_size = (uint64_t)st.st_size;
	return 0;
}

static int check_buffer(struct pb_data *d, char *err, size_t errlen)
{
	char known[200] = "0";
	unsigned notes = 0;

	for (size_t i = 0; i < d->nr_buffers; i++) {
		const struct pb_buffer *b = &d->buffers[i];
		size_t len = strlen(known);

		if (b->id == d->buffer)
			continue;
		if (b->id)
			snprintf(known + len, sizeof(known) - len, ", %u", b->id);
		if (!d->buffer && notes++ < BUFFER_NOTES)
			pb_data_note(d,
				     "buffer %u has %llu more chunk%s; show them with --buffer=%u",
				     b->id, (unsigned long long)b->chunks, pb_plural(b->chunks),
				     b->id);
	}
	if (!d->buffer || d->nr_chunks)
		return 0;
	snprintf(err, errlen, "--buffer=%u: the recording in %s has no such buffer; it has %s",
		 d->buffer, d->dir, known);
	return -ENOENT;
}

struct pb_data *pb_data_open(const char *dir, uint32_t buffer, char *err, size_t errlen)
{
	struct pb_data *d = calloc(1, sizeof(*d));
	char why[8];
	int ret = -ENOMEM;

	snprintf(err, errlen, "%s: out of memory", dir);
	if (!d)
		return NULL;
	d->dir_fd = d->chunks_fd = d->open_fd = -1;
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
	if (!d->symbols) {
		snprintf(err, errlen, "%s: out of memory", dir);
		ret = -ENOMEM;
		goto fail;
	}
	if (d->clock.uncalibrated && d->nr_chunks)
		pb_data_note(d, "the clock was read only once: times are in TSC cycles, not "
				"nanoseconds");
	if (!d->ended && !d->damaged)
		pb_data_note(d, pb_data_session(d, "snapshot", why, sizeof(why)) ?
			     "this snapshot is unfinished (patchbay was killed while it wrote the "
			     "snapshot, or still writes it): only the data that it wrote is shown" :
			     "the recording didn't end normally (the recorder was killed, or still "
			     "runs): only the data that it wrote is shown");
	return d;
fail:
	pb_data_close(d);
	errno = -ret;
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
	if (d->open_fd >= 0)
		close(d->open_fd);
	if (d->dir_fd >= 0)
		close(d->dir_fd);
	free(d->dir);
	free(d);
}
