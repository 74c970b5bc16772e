/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Loads `meta`. A record that is too short for its type is skipped. Loading stops at a record that
 * reaches past the file's end: that record was cut off when the recorder was killed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi/record.h"
#include "base/base.h"
#include "base/clean_text.h"
#include "reader/data.h"

#define META_MAX (1u << 30)	/* if the file is larger, the rest isn't read. A million images,
				 * which is the recorder's limit, take less */
#define NOTES_MAX 64		/* how many notes of the recorder are shown: the newest */

struct loader {
	struct pb_data *d;
	struct pb_meta_clock *pairs;
	size_t nr_pairs;
	char *notes[NOTES_MAX];		/* the recorder's newest notes; i is at i % NOTES_MAX */
	size_t nr_notes;
	bool nomem;
};

/* Adds an element of zeroes to the array. When the array's length is a power of two, its room is
 * doubled. */
static void *grow(struct loader *l, void *array, size_t *nr, size_t size)
{
	char **p = array;

	if (!(*nr & (*nr - 1))) {
		void *bigger = realloc(*p, (*nr ? *nr * 2 : 1) * size);

		if (!bigger) {
			l->nomem = true;
			return NULL;
		}
		*p = bigger;
	}
	return memset(*p + (*nr)++ * size, 0, size);
}

static char *text_of(const char *body, size_t len, size_t skip)
{
	char *s = strndup(body + skip, len - skip);

	pb_text_clean(s, '?', 0);
	return s;
}

static void load_session(struct pb_data *d, const char *body, size_t len)
{
	if (d->session)
		return;
	d->session = strndup(body, len);
	pb_text_clean(d->session, '?', '\n');
}

static void load_image(struct loader *l, const char *body, size_t len)
{
	struct pb_data *d = l->d;
	struct pb_meta_image m;
	struct pb_image *image = grow(l, &d->images, &d->nr_images, sizeof(*image));

	if (!image)
		return;
	memcpy(&m, body, sizeof(m));
	image->image = m.image;
	image->pid = m.pid;
	image->ppid = m.ppid;
	image->outer_pid = m.outer_pid;
	image->clock = m.clock;
	image->path = text_of(body, len, sizeof(m));
}

static void load_module(struct loader *l, const char *body, size_t len)
{
	struct pb_data *d = l->d;
	struct pb_meta_module m;
	struct pb_module_map *map = grow(l, &d->maps, &d->nr_maps, sizeof(*map));

	if (!map)
		return;
	memcpy(&m, body, sizeof(m));
	*map = (struct pb_module_map){
		.image = m.image, .module = m.module, .pid = m.pid, .first_site = m.first_site,
		.nr_funcs = m.nr_funcs, .flags = m.flags, .bias = m.bias, .from = m.clock,
		.to = UINT64_MAX, .path = text_of(body, len, sizeof(m)),
	};
}

/* Ends the newest mapping of the module. A linear search is fast enough, because few modules are
 * unloaded. Only the newest 4096 mappings are searched, so that a hostile file can't make this
 * slow. */
static void module_gone(struct pb_data *d, const struct pb_meta_module *m)
{
	size_t looked = 0;

	for (size_t i = d->nr_maps; i-- && looked < 4096; looked++) {
		struct pb_module_map *map = &d->maps[i];

		if (map->image == m->image && map->module == m->module && map->to == UINT64_MAX &&
		    (!m->pid || map->pid == m->pid)) {
			map->to = m->clock;
			return;
		}
	}
}

static void load_ready(struct pb_data *d, const char *body)
{
	struct pb_msg_ready m;

	memcpy(&m, body, sizeof(m));
	d->ready.modules += m.modules;
	d->ready.sites += m.sites;
	d->ready.patched += m.patched;
	d->ready.refused += m.refused;
	d->ready.patch_ns += m.patch_ns;
	d->ready.start_ns += m.start_ns;
}

static void load_thread(struct loader *l, const char *body, size_t len)
{
	struct pb_ring_thread m;
	struct pb_thread *t;
	char *comm;

	memcpy(&m, body, sizeof(m));
	if (!m.serial)
		return;
	t = grow(l, &l->d->threads, &l->d->nr_threads, sizeof(*t));
	if (!t)
		return;
	*t = (struct pb_thread){
		.serial = m.serial, .pid = m.pid, .tid = m.tid, .start = m.start, .born = m.start,
		.lost = m.lost, .no_return = m.no_return, .missed = m.missed,
	};
	comm = text_of(body, len, sizeof(m));
	snprintf(t->comm, sizeof(t->comm), "%s", comm ? comm : "");
	free(comm);
}

/* A DISCARDED record comes directly after the record of its thread. */
static void load_discarded(struct pb_data *d, const char *body)
{
	struct pb_thread *t = d->nr_threads ? &d->threads[d->nr_threads - 1] : NULL;
	struct pb_meta_discarded m;

	memcpy(&m, body, sizeof(m));
	if (!t || t->serial != m.serial)
		return;
	t->discarded = m.calls < t->lost ? m.calls : t->lost;
	d->discard_error = m.error;
}

static void load_exit(struct loader *l, const char *body)
{
	struct pb_meta_exit m;
	struct pb_exit *e = grow(l, &l->d->exits, &l->d->nr_exits, sizeof(*e));

	memcpy(&m, body, sizeof(m));
	if (e)
		*e = (struct pb_exit){ .pid = m.pid, .status = m.status };
}

/* Drops a note that is already kept. */
static void load_note(struct loader *l, const char *body, size_t len)
{
	char *text = strndup(body, len < 1024 ? len : 1024);
	char **to = &l->notes[l->nr_notes % NOTES_MAX];

	for (size_t i = 0; text && i < NOTES_MAX && l->notes[i]; i++)
		if (!strcmp(l->notes[i], text)) {
			free(text);
			return;
		}
	if (!text)
		return;
	free(*to);
	*to = text;
	l->nr_notes++;
}

/* Adds the recorder's newest notes to the directory's notes. */
static void add_notes(struct loader *l)
{
	size_t nr = l->nr_notes, left_out = nr > NOTES_MAX ? nr - NOTES_MAX : 0;

	if (left_out)
		pb_data_note(l->d, "left out: %zu earlier note%s of the recorder", left_out,
			     pb_plural(left_out));
	for (size_t i = left_out; i < nr; i++) {
		pb_data_note(l->d, "%s", l->notes[i % NOTES_MAX]);
		free(l->notes[i % NOTES_MAX]);
	}
}

static void load_record(struct loader *l, uint32_t type, const char *body, size_t len)
{
	struct pb_data *d = l->d;
	struct pb_meta_module gone;
	struct pb_meta_clock *pair;

#define IS(t, size) (type == PB_META_##t && len >= (size))
	if (IS(SESSION, 1)) {
		load_session(d, body, len);
	} else if (IS(CLOCK, sizeof(*pair))) {
		pair = grow(l, &l->pairs, &l->nr_pairs, sizeof(*pair));
		if (pair)
			memcpy(pair, body, sizeof(*pair));
	} else if (IS(IMAGE, sizeof(struct pb_meta_image))) {
		load_image(l, body, len);
	} else if (IS(MODULE, sizeof(struct pb_meta_module))) {
		load_module(l, body, len);
	} else if (IS(MODULE_GONE, sizeof(gone))) {
		memcpy(&gone, body, sizeof(gone));
		module_gone(d, &gone);
	} else if (IS(REFUSED, sizeof(struct pb_meta_refused))) {
		d->refused_late++;
	} else if (IS(READY, sizeof(struct pb_msg_ready))) {
		load_ready(d, body);
	} else if (IS(THREAD, sizeof(struct pb_ring_thread))) {
		load_thread(l, body, len);
	} else if (IS(DISCARDED, sizeof(struct pb_meta_discarded))) {
		load_discarded(d, body);
	} else if (IS(EXIT, sizeof(struct pb_meta_exit))) {
		load_exit(l, body);
	} else if (IS(NOTE, 1)) {
		load_note(l, body, len);
	} else if (IS(END, offsetof(struct pb_meta_end, overwritten))) {
		memcpy(&d->end, body, len < sizeof(d->end) ? len : sizeof(d->end));
		d->ended = true;
	}
#undef IS
}

static int by_image(const void *a, const void *b)
{
	const struct pb_image *x = a, *y = b;

	return x->image < y->image ? -1 : x->image > y->image;
}

static int by_site(const void *a, const void *b)
{
	const struct pb_module_map *x = a, *y = b;

	if (x->image != y->image)
		return x->image < y->image ? -1 : 1;
	if (x->first_site != y->first_site)
		return x->first_site < y->first_site ? -1 : 1;
	return x->from < y->from ? -1 : x->from > y->from;
}

/* Gives each image its modules, and sets nr_sites. The image of every module is known, because the
 * recorder writes an image before the image's modules. */
static void assign_maps(struct pb_data *d)
{
	size_t i = 0;

	for (size_t n = 1; n < d->nr_images; n++) {
		struct pb_image *image = &d->images[n];

		while (i < d->nr_maps && d->maps[i].image < image->image)
			i++;
		image->first_map = i;
		for (; i < d->nr_maps && d->maps[i].image == image->image; i++) {
			uint64_t end = (uint64_t)d->maps[i].first_site + d->maps[i].nr_funcs;

			if (!d->maps[i].first_site)
				continue;
			if (end > PB_MAX_SITES)
				end = PB_MAX_SITES;
			if (image->nr_sites < end)
				image->nr_sites = (uint32_t)end;
		}
		image->nr_maps = i - image->first_map;
	}
}

/* Keeps the first of equal elements in a sorted array. Returns the new number of elements. */
static size_t unique(void *array, size_t nr, size_t size,
		     int (*compare)(const void *, const void *), void (*drop)(void *))
{
	char *p = array;
	size_t to = nr != 0;

	for (size_t i = 1; i < nr; i++) {
		if (!compare(p + (to - 1) * size, p + i * size)) {
			if (drop)
				drop(p + i * size);
			continue;
		}
		if (to != i)
			memcpy(p + to * size, p + i * size, size);
		to++;
	}
	return to;
}

static void drop_image(void *image)
{
	free(((struct pb_image *)image)->path);
}

static void parse(struct loader *l, const char *buf, size_t size)
{
	size_t at = sizeof(struct pb_data_header);
	struct pb_meta m;

	while (at < size && !l->nomem) {
		if (size - at < sizeof(m))
			break;
		memcpy(&m, buf + at, sizeof(m));
		if (m.len > size - at - sizeof(m))
			break;
		load_record(l, m.type, buf + at + sizeof(m), m.len);
		at += sizeof(m) + pb_align_up((size_t)m.len, 8);
	}
	add_notes(l);
	if (at < size && size < META_MAX) {
		l->d->damaged = true;
		pb_data_note(l->d, "meta is cut off or damaged at byte %zu: names or threads may "
				   "be missing",
			     at);
	}
}

/* Returns the file's contents. The caller frees them. Returns NULL and sets *ret to -errno if the
 * file can't be read. */
static char *read_file(struct pb_data *d, size_t *size, int *ret, char *err, size_t errlen)
{
	int fd = openat(d->dir_fd, "meta", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	size_t have = 0;
	char *buf = NULL;

	if (fd < 0) {
		*ret = -errno;
		snprintf(err, errlen, "%s: holds no readable meta file (%s); is it a Patchbay data "
			 "directory?", d->dir, strerror(errno));
		return NULL;
	}
	*ret = pb_data_check_header(d, "meta", fd, PB_DATA_MAGIC_META, err, errlen);
	if (!*ret && fstat(fd, &st))
		*ret = -errno;
	if (*ret)
		goto out;
	*size = (size_t)st.st_size;
	if (*size > META_MAX) {
		*size = META_MAX;
		d->damaged = true;
		pb_data_note(d, "meta is too large: only its first GiB is read, so names or "
				"threads may be missing");
	}
	buf = malloc(*size + 1);
	*ret = buf ? 0 : -ENOMEM;
	while (buf && have < *size) {
		ssize_t n = pread(fd, buf + have, *size - have, (off_t)have);

		if (n <= 0)
			break;
		have += (size_t)n;
	}
	*size = have;
out:
	close(fd);
	return buf;
}

int pb_data_load_meta(struct pb_data *d, char *err, size_t errlen)
{
	struct loader l = { .d = d };
	char clock[32], *buf;
	size_t size = 0;
	int ret = -ENOMEM;

	grow(&l, &d->images, &d->nr_images, sizeof(*d->images));
	buf = read_file(d, &size, &ret, err, errlen);
	if (!buf)
		return ret;
	ret = -ENOMEM;
	if (!l.nomem)
		parse(&l, buf, size);
	free(buf);
	if (!l.nomem) {
		qsort(d->images + 1, d->nr_images - 1, sizeof(*d->images), by_image);
		d->nr_images = 1 + unique(d->images + 1, d->nr_images - 1, sizeof(*d->images),
					  by_image, drop_image);
		if (d->nr_maps)
			qsort(d->maps, d->nr_maps, sizeof(*d->maps), by_site);
		if (d->nr_threads)
			qsort(d->threads, d->nr_threads, sizeof(*d->threads), pb_data_by_serial);
		d->nr_threads = unique(d->threads, d->nr_threads, sizeof(*d->threads),
				       pb_data_by_serial, NULL);
		assign_maps(d);
		pb_data_session(d, "clock", clock, sizeof(clock));
		ret = pb_clock_init(&d->clock, clock, l.pairs, l.nr_pairs);
	}
	free(l.pairs);
	if (ret)
		snprintf(err, errlen, "%s: out of memory", d->dir);
	return ret;
}
