/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copies chunks without taking them. A copy is valid if the chunk had the same serial, `seq` and
 * count of uses before and after the copy, and was OPEN, HELD or FULL both times. Until a chunk is
 * used again, its thread only appends records to it, or fills its holes. The count of uses is read
 * before the state: if another thread takes the chunk over after the state was read, the count
 * changes. If the recorder frees the chunk's memory, the count begins again. So a chunk that was
 * FULL must also be FULL when its header was copied, and after the copy.
 *
 * The thread may append while a chunk is copied. So first the chunk's header is copied, then the
 * last word that isn't zero is searched for, and then the words up to it are copied. So all records
 * that were complete at the time of the search are in the copy, and words after the last word that
 * was found are not. The header is copied before the records. The open leaf in the header may end,
 * or make a traced call, before the search. Then the copy has a record that shows this
 * (abi/ring.h).
 *
 * The copy of an OPEN chunk may lack the chunk's last records. Then the snapshot must not have a
 * later chunk of the same thread. Readers would assume that no record is missing between the two
 * chunks. So the OPEN chunks are copied last. First they are listed. Only the chunks in the list
 * are copied, and those of one thread newest first. So if a chunk's successor was copied with
 * records, the thread had left the chunk before, and the copy of the chunk has all of its records.
 */
#include "reader/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi/datadir.h"
#include "base/base.h"
#include "reader/counts.h"
#include "reader/datadir_writer.h"

#define BATCH		64		/* number of chunks in one write: 1 MiB */
#define DATA_WORDS	((PB_CHUNK_SIZE - PB_CHUNK_HEADER) / 8)
#define TRIES		3		/* limit of the tries to copy one chunk */

struct copy {
	struct pb_chunk head;
	uint64_t data[DATA_WORDS];
};

/* A chunk that is copied last. */
struct unfinished {
	uint32_t index, serial;
	uint64_t seq;
};

struct writer {
	struct pb_snapshot *s;
	struct pb_datadir dir;
	struct pb_counts counts;
	struct copy *batch;
	unsigned nr;
	uint64_t meta;			/* the recording's meta file was copied up to this offset */
	uint8_t *done;			/* [nr_chunks] the chunk was copied, has no records, or was
					 * noted in `last` */
	struct unfinished *unfinished;	/* [nr_chunks] */
	/* Used only if `newest` is set; the index is the serial minus 1. An element is the index of
	 * the thread's newest FULL chunk, plus 1; or UINT32_MAX if a chunk of the thread has
	 * already been copied; or 0. */
	uint32_t *last;
	uint32_t nr_last;
};

/* --- one chunk ------------------------------------------------------------- */

static const struct pb_chunk *chunk(const struct pb_snapshot *s, uint32_t i)
{
	return (const void *)((const char *)s->ring + s->geometry.chunks_offset +
			      (uint64_t)i * PB_CHUNK_SIZE);
}

static bool has_records(uint32_t state)
{
	return state == PB_CHUNK_OPEN || state == PB_CHUNK_HELD || state == PB_CHUNK_FULL;
}

static uint32_t copy_data(const struct pb_chunk *c, uint64_t *to)
{
	const uint64_t *words = (const void *)(c + 1);
	uint32_t n = DATA_WORDS;

	while (n && !__atomic_load_n(&words[n - 1], __ATOMIC_ACQUIRE))
		n--;
	for (uint32_t i = 0; i < n; i++)
		to[i] = __atomic_load_n(&words[i], __ATOMIC_ACQUIRE);
	return n * 8;
}

static bool is_same(const struct pb_chunk *c, const struct pb_chunk *head)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	uint64_t word = __atomic_load_n((const uint64_t *)c, __ATOMIC_ACQUIRE);

	return has_records((uint32_t)word) && word >> 32 == head->serial &&
	       (head->state != PB_CHUNK_FULL || (uint32_t)word == PB_CHUNK_FULL) &&
	       __atomic_load_n(&c->seq, __ATOMIC_RELAXED) == head->seq &&
	       __atomic_load_n(&c->uses, __ATOMIC_RELAXED) == head->uses;
}

enum copied { COPIED, NO_RECORDS, CHANGED };

static enum copied copy_chunk(const struct pb_chunk *c, struct copy *to)
{
	uint32_t uses = __atomic_load_n(&c->uses, __ATOMIC_ACQUIRE), listed;
	uint32_t state = __atomic_load_n(&c->state, __ATOMIC_ACQUIRE);

	if (state == PB_CHUNK_READING)
		return CHANGED;
	if (!has_records(state))
		return NO_RECORDS;
	memcpy(&to->head, c, sizeof(to->head));
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (state == PB_CHUNK_FULL && __atomic_load_n(&c->state, __ATOMIC_ACQUIRE) != state)
		return CHANGED;
	to->head.state = state;
	to->head.uses = uses;
	listed = to->head.used;
	to->head.used = copy_data(c, to->data);
	if (!is_same(c, &to->head))
		return CHANGED;
	/* Leave out a header without a serial, because readers would take it for the end of the
	 * file. Leave out an OPEN chunk that has only its list of open calls, because it may never
	 * have been used (abi/ring.h) */
	if (!to->head.serial || !to->head.used ||
	    (state == PB_CHUNK_OPEN && !to->head.leaf_start && to->head.used <= listed))
		return NO_RECORDS;
	return COPIED;
}

/* --- all chunks ------------------------------------------------------------ */

static int flush(struct writer *w)
{
	struct iovec iov[2 * BATCH];
	uint64_t bytes = 0;

	for (unsigned i = 0; i < w->nr; i++) {
		struct copy *c = &w->batch[i];

		iov[2 * i] = (struct iovec){ &c->head, sizeof(c->head) };
		iov[2 * i + 1] = (struct iovec){ c->data, c->head.used };
		bytes += sizeof(c->head) + c->head.used;
		pb_counts_add(&w->counts, c->data, c->head.used / 8);
	}
	int ret = w->nr ? pb_datadir_chunks(&w->dir, iov, (int)(2 * w->nr), bytes) : 0;
	w->s->chunks += ret ? 0 : w->nr;
	w->s->bytes += ret ? 0 : bytes;
	w->nr = 0;
	return ret;
}

/* Copies a chunk into the batch if it is as expected. If `listed` is NULL, the chunk must not be
 * OPEN. Otherwise it must still be the chunk that was listed. Sets done[i] if the chunk was copied
 * or has no records. Returns 0 or -errno. */
static int take(struct writer *w, uint32_t i, const struct unfinished *listed)
{
	struct copy *to = &w->batch[w->nr];
	enum copied how = copy_chunk(chunk(w->s, i), to);

	if (how == COPIED &&
	    (listed ? to->head.serial != listed->serial || to->head.seq != listed->seq :
		      to->head.state == PB_CHUNK_OPEN))
		how = CHANGED;
	/* the listed chunk was freed or taken again before it was copied, so its records are
	 * missing */
	if (how == NO_RECORDS && listed &&
	    !has_records(__atomic_load_n(&chunk(w->s, i)->state, __ATOMIC_ACQUIRE)))
		how = CHANGED;
	w->done[i] = how != CHANGED;
	if (how != COPIED)
		return 0;
	if (w->last && to->head.serial <= w->nr_last)
		w->last[to->head.serial - 1] = UINT32_MAX;
	return ++w->nr == BATCH ? flush(w) : 0;
}

/* Called only if `newest` is set: notes a FULL chunk. The chunk is copied later, if it is the
 * thread's newest FULL chunk and the thread has no open chunk. */
static void note_full(struct writer *w, uint32_t i)
{
	const struct pb_chunk *c = chunk(w->s, i);
	uint32_t serial = __atomic_load_n(&c->serial, __ATOMIC_RELAXED), old;

	w->done[i] = 1;
	if (!serial || serial > w->nr_last)
		return;
	old = w->last[serial - 1];
	if (!old || (old != UINT32_MAX && c->seq > chunk(w->s, old - 1)->seq))
		w->last[serial - 1] = i + 1;
}

static bool is_taken(const struct pb_snapshot *s, uint32_t i)
{
	const uint64_t *taken = (const void *)((const char *)s->ring +
			pb_ring_taken_offset(s->geometry.threads_offset, s->geometry.nr_threads));

	return __atomic_load_n(&taken[i / 64], __ATOMIC_ACQUIRE) >> i % 64 & 1;
}

/* Copies the chunks that are neither free nor OPEN and haven't been copied. In overwrite mode,
 * agents use the oldest chunk next, so the round begins there. */
static int copy_round(struct writer *w)
{
	const struct pb_snapshot *s = w->s;
	uint32_t nr = s->geometry.nr_chunks,
		 first = __atomic_load_n(&s->ring->next_chunk, __ATOMIC_RELAXED);
	int ret = 0;

	first = first < pb_ring_usable(s->ring, nr) ? first : 0;
	for (uint32_t n = 0; n < nr && !ret; n++) {
		uint32_t i = n < nr - first ? first + n : n - (nr - first);

		if (w->done[i] || !is_taken(s, i))
			continue;
		uint32_t state = __atomic_load_n(&chunk(s, i)->state, __ATOMIC_ACQUIRE);
		if (w->last && state == PB_CHUNK_FULL)
			note_full(w, i);
		else if (state != PB_CHUNK_OPEN)
			ret = take(w, i, NULL);
	}
	return ret;
}

static int newest_of_thread_first(const void *a, const void *b)
{
	const struct unfinished *x = a, *y = b;

	if (x->serial != y->serial)
		return x->serial < y->serial ? -1 : 1;
	return x->seq > y->seq ? -1 : x->seq < y->seq;
}

static struct unfinished describe(const struct writer *w, uint32_t i)
{
	const struct pb_chunk *c = chunk(w->s, i);

	return (struct unfinished){ i, __atomic_load_n(&c->serial, __ATOMIC_RELAXED),
				    __atomic_load_n(&c->seq, __ATOMIC_RELAXED) };
}

static uint32_t list_unfinished(struct writer *w)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < w->s->geometry.nr_chunks; i++) {
		if (w->done[i])
			continue;
		w->done[i] = !is_taken(w->s, i);
		if (!w->done[i])
			w->unfinished[nr++] = describe(w, i);
	}
	qsort(w->unfinished, nr, sizeof(*w->unfinished), newest_of_thread_first);
	return nr;
}

/* Returns the thread's newest OPEN chunk. If there is none, the result's serial is 0. */
static struct unfinished find_present(const struct writer *w, uint32_t serial)
{
	struct unfinished found = { 0 };

	for (uint32_t i = 0; i < w->s->geometry.nr_chunks; i++) {
		if (!is_taken(w->s, i))
			continue;	/* to read an unused chunk would allocate its memory */
		struct unfinished u = describe(w, i);

		if (u.serial == serial && u.seq >= found.seq &&
		    __atomic_load_n(&chunk(w->s, i)->state, __ATOMIC_ACQUIRE) == PB_CHUNK_OPEN)
			found = u;
	}
	return found;
}

/* The thread's newest chunk was overwritten before it was copied. Copies the thread's present chunk
 * instead, so that the snapshot has records of the thread. */
static int copy_present(struct writer *w, uint32_t serial)
{
	int ret = 0;

	for (int n = 0; n < TRIES && !ret; n++) {
		struct unfinished u = find_present(w, serial);

		if (!u.serial)
			break;
		ret = take(w, u.index, &u);
		if (w->done[u.index])
			break;
	}
	return ret;
}

/* Copies the chunks that no round has copied: they were OPEN, or changed during each try. */
static int copy_unfinished(struct writer *w)
{
	uint32_t nr = list_unfinished(w);
	const struct unfinished *u = w->unfinished;
	int ret = 0;

	for (uint32_t i = 0; i < nr && !ret; i++) {
		bool newest = !i || u[i].serial != u[i - 1].serial;

		ret = take(w, u[i].index, &u[i]);
		if (!ret && newest && !w->done[u[i].index])
			ret = copy_present(w, u[i].serial);
	}
	return ret;
}

/* Copies the newest FULL chunk of each thread that has no open chunk, except if the thread has
 * ended. */
static int copy_last(struct writer *w)
{
	const struct pb_snapshot *s = w->s;
	int ret = 0;

	for (uint32_t i = 0; i < w->nr_last && !ret; i++) {
		if (!w->last[i] || w->last[i] == UINT32_MAX)
			continue;
		const struct pb_chunk *c = chunk(s, w->last[i] - 1);
		if (!s->thread_ended || !s->thread_ended(s->arg, c->pid, c->tid))
			ret = take(w, w->last[i] - 1, NULL);
	}
	return ret;
}

static int copy_chunks(struct writer *w)
{
	int ret = 0;

	for (int i = 0; i < TRIES && !ret; i++)
		ret = copy_round(w);
	if (!ret)
		ret = copy_unfinished(w);
	if (!ret)
		ret = copy_last(w);
	return ret ? ret : flush(w);
}

static uint64_t count_missed(const struct writer *w)
{
	uint64_t nr = 0;

	for (uint32_t i = 0; i < w->s->geometry.nr_chunks; i++)
		nr += !w->done[i] && is_taken(w->s, i);
	return nr;
}

/* --- what the chunks refer to ---------------------------------------------- */

/* Copies the analysis of a module, or makes a link to it. */
static int take_module(struct writer *w, int modules, uint32_t number)
{
	struct stat st;
	char name[16];

	snprintf(name, sizeof(name), "%u", number);
	if (!linkat(modules, name, w->dir.modules_fd, name, 0) || errno == EEXIST)
		return 0;
	int fd = openat(modules, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	int ret = fstat(fd, &st) ? -errno : !S_ISREG(st.st_mode) ? -EINVAL :
		  pb_datadir_module(&w->dir, number, fd, (uint64_t)st.st_size);
	close(fd);
	return ret;
}

static int take_session(struct writer *w, const char *text, size_t len)
{
	char why[300];

	snprintf(why, sizeof(why), "snapshot=%s\n", w->s->why);
	return pb_datadir_meta(&w->dir, PB_META_SESSION, text, len, why, strlen(why));
}

/* Copies the complete records of a meta file, except those that are written at the end of a
 * recording (PB_META_THREAD, PB_META_DISCARDED, PB_META_END). If `modules` is -1, stops at the
 * first module. */
static int take_records(struct writer *w, int modules, const char *at, const char *end)
{
	const char *begin = at;
	int ret = 0;

	while (!ret && (size_t)(end - at) >= sizeof(struct pb_meta)) {
		struct pb_meta m;
		struct pb_meta_module module;

		memcpy(&m, at, sizeof(m));
		if (pb_align_up((uint64_t)m.len, 8) > (uint64_t)(end - at) - sizeof(m) ||
		    (modules < 0 && m.type == PB_META_MODULE))
			break;
		at += sizeof(m);
		if (m.type == PB_META_SESSION)
			ret = take_session(w, at, m.len);
		else if (m.type != PB_META_THREAD && m.type != PB_META_DISCARDED &&
			 m.type != PB_META_END)
			ret = pb_datadir_meta(&w->dir, m.type, at, m.len, NULL, 0);
		if (!ret && m.type == PB_META_MODULE && m.len >= sizeof(module)) {
			memcpy(&module, at, sizeof(module));
			ret = take_module(w, modules, module.module);
		}
		at += pb_align_up((uint64_t)m.len, 8);
	}
	w->meta += (uint64_t)(at - begin);
	return ret;
}

/* Reads what the meta file has now, from this offset on. The caller sets *text to NULL and *len to
 * 0, and frees *text. */
static int read_meta(int from, uint64_t offset, char **text, size_t *len)
{
	struct stat st = { 0 };
	size_t size;
	ssize_t n = 0;
	int ret = 0, fd = openat(from, "meta", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		ret = -errno;
	else if (!S_ISREG(st.st_mode))
		ret = -EINVAL;
	size = (uint64_t)st.st_size > offset ? (size_t)st.st_size - offset : 0;
	if (!ret && !(*text = malloc(size + 1)))
		ret = -ENOMEM;
	while (!ret && *len < size &&
	       (n = pread(fd, *text + *len, size - *len, (off_t)(offset + *len))) > 0)
		*len += (size_t)n;
	if (!ret && n < 0)
		ret = -errno;
	close(fd);
	return ret;
}

/* Copies the meta records that earlier calls haven't copied. */
static int take_meta(struct writer *w, int modules)
{
	char *text = NULL;
	size_t len = 0;
	int ret = read_meta(w->s->from, w->meta, &text, &len);

	if (!ret)
		ret = take_records(w, modules, text, text + len);
	free(text);
	return ret;
}

/* If this process is killed while it copies chunks, readers must know what the directory is. So the
 * session's text is copied first. The analyses of modules are copied after the chunks: analyses may
 * be large, and while they are copied, the oldest chunks may be overwritten. */
static int take_start(struct writer *w)
{
	w->meta = sizeof(struct pb_data_header);
	return take_meta(w, -1);
}

/* Must be called after the chunks were copied. The meta file then has all images and modules that
 * the chunks refer to. */
static int take_rest(struct writer *w)
{
	int modules = openat(w->s->from, "modules", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int ret = modules < 0 ? -errno : take_meta(w, modules);

	if (modules >= 0)
		close(modules);
	return ret;
}

/* --- the end --------------------------------------------------------------- */

/* Adds the threads' late and regained calls to *late and *regained. */
static int write_threads(struct writer *w, struct pb_meta_end *end, uint64_t *late,
			 uint64_t *regained)
{
	const struct pb_snapshot *s = w->s;
	const struct pb_ring_thread *t =
		(const void *)((const char *)s->ring + s->geometry.threads_offset);
	int ret = 0;

	for (uint32_t i = 0; i < w->s->threads && !ret; i++) {
		char comm[PB_SNAPSHOT_COMM] = "";
		struct pb_ring_thread copy;

		memcpy(&copy, &t[i], sizeof(copy));
		pb_barrier();	/* check and use the copy, because the ring may change */
		if (!copy.serial)
			continue;
		s->thread_name(s->arg, i, &copy, comm);
		end->lost += copy.lost;
		*late += copy.late;
		*regained += copy.regained;
		end->no_return += copy.no_return;
		end->threads++;
		ret = pb_datadir_meta(&w->dir, PB_META_THREAD, &copy, sizeof(copy), comm,
				      strlen(comm) + 1);
	}
	return ret;
}

static int write_end(struct writer *w)
{
	const struct pb_ring *ring = w->s->ring;
	struct pb_meta_end end = {
		.lost = ring->calls_lost, .no_return = ring->calls_no_return,
		.processes = ring->processes, .max_stop_ns = ring->max_stop_ns,
		.chunks_overwritten = ring->chunks_overwritten,
		.records = w->counts.records, .bytes = w->dir.chunks_size,
	};
	uint64_t late = ring->calls_late, regained = ring->calls_regained;
	int ret = write_threads(w, &end, &late, &regained);

	end.lost += pb_ring_open_late(late, regained);
	return ret ? ret : pb_datadir_meta(&w->dir, PB_META_END, &end, sizeof(end), NULL, 0);
}

static int write_all(struct writer *w)
{
	struct pb_snapshot *s = w->s;
	uint32_t nr = __atomic_load_n(&s->ring->next_serial, __ATOMIC_ACQUIRE);

	s->threads = nr < s->geometry.nr_threads ? nr : s->geometry.nr_threads;
	w->batch = malloc(BATCH * sizeof(*w->batch));
	w->done = calloc(s->geometry.nr_chunks, 1);
	w->nr_last = s->newest ? s->threads : 0;
	w->last = s->newest ? calloc(s->threads + 1ul, sizeof(*w->last)) : NULL;
	w->unfinished = calloc(s->geometry.nr_chunks, sizeof(*w->unfinished));
	if (!w->batch || !w->done || !w->unfinished || (s->newest && !w->last))
		return -ENOMEM;
	int ret = take_start(w);
	if (!ret)
		ret = copy_chunks(w);
	s->missed = count_missed(w);
	/* readers use the last reading of the clock as the time of the snapshot */
	ret = ret ? ret : pb_datadir_clock(&w->dir);
	ret = ret ? ret : take_rest(w);
	return ret ? ret : write_end(w);
}

/* True if the snapshot would rename or remove the directory of the recording itself. The snapshot
 * renames an existing directory DIR to DIR.old, and removes an older DIR.old
 * (reader/datadir_writer.c). */
static bool moves_recording(const struct pb_snapshot *s, const char *dir)
{
	static const char *const suffixes[] = { "", ".old", ".old~" };
	struct stat recording, st;
	size_t len = strlen(dir);
	char name[PATH_MAX];

	while (len > 1 && dir[len - 1] == '/')
		len--;
	if (fstat(s->from, &recording))
		return false;
	for (size_t i = 0; i < pb_array_size(suffixes); i++)
		if (snprintf(name, sizeof(name), "%.*s%s", (int)len, dir, suffixes[i]) <
		    (int)sizeof(name) && !lstat(name, &st) && st.st_dev == recording.st_dev &&
		    st.st_ino == recording.st_ino)
			return true;
	return false;
}

int pb_snapshot_write(struct pb_snapshot *s, const char *dir, char *err, size_t errlen)
{
	struct writer *w;
	int ret;

	if (moves_recording(s, dir)) {
		snprintf(err, errlen, "%s: the recording goes on there; choose another name with "
			 "-d", dir);
		return -EBUSY;
	}
	w = calloc(1, sizeof(*w));
	if (!w) {
		snprintf(err, errlen, "out of memory");
		return -ENOMEM;
	}
	w->s = s;
	ret = pb_datadir_open(&w->dir, dir, err, errlen);
	if (!ret) {
		ret = write_all(w);
		if (ret) {
			snprintf(err, errlen, "%s: %s", dir, strerror(-ret));
			pb_datadir_undo(&w->dir);
		} else {
			pb_datadir_commit(&w->dir);
			pb_datadir_close(&w->dir);
		}
	}
	free(w->last);
	free(w->unfinished);
	free(w->done);
	free(w->batch);
	free(w);
	return ret;
}
