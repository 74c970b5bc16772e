/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes each record of the meta file immediately. Collects a chunk's records in struct gen until
 * gen_chunk_write(). */
#include "gen_data.h"

#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi/analysis.h"
#include "base/base.h"

static void put(int fd, const void *p, size_t len)
{
	if (write(fd, p, len) != (ssize_t)len)
		err(1, "write");
}

static int create(const char *dir, const char *name, uint64_t magic)
{
	struct pb_data_header h = { .magic = magic, .version = PB_DATA_VERSION };
	char path[4200];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0666);
	if (fd < 0)
		err(1, "%s", path);
	if (magic)
		put(fd, &h, sizeof(h));
	return fd;
}

void gen_meta(struct gen *g, uint32_t type, const void *body, size_t len, const char *tail)
{
	static const char zero[8];
	size_t tail_len = tail ? strlen(tail) + 1 : 0;
	struct pb_meta m = { type, (uint32_t)(len + tail_len) };

	put(g->meta, &m, sizeof(m));
	put(g->meta, body, len);
	put(g->meta, tail, tail_len);
	put(g->meta, zero, pb_align_up(len + tail_len, 8) - len - tail_len);
}

static void clock_pair(struct gen *g, uint64_t tsc)
{
	uint64_t ns = (tsc - GEN_START) / 2;
	struct pb_meta_clock c = {
		.tsc = tsc, .monotonic = 100000000000 + ns, .monotonic_raw = 200000000000 + ns,
		.boottime = 300000000000 + ns, .realtime = 1700000000000000000 + ns,
	};

	gen_meta(g, PB_META_CLOCK, &c, sizeof(c), NULL);
}

void gen_begin(struct gen *g, const char *dir, const char *tracer, const char *clock)
{
	char path[4200], session[512];

	memset(g, 0, sizeof(*g));
	snprintf(g->dir, sizeof(g->dir), "%s", dir);
	mkdir(dir, 0777);
	snprintf(path, sizeof(path), "%s/modules", dir);
	mkdir(path, 0777);
	g->chunks = create(dir, "chunks", PB_DATA_MAGIC_CHUNKS);
	g->meta = create(dir, "meta", PB_DATA_MAGIC_META);
	snprintf(session, sizeof(session), "cmdline=victim --fast\nexe=/usr/bin/victim\ncwd=/tmp\n"
		 "host=here\nkernel=Linux 6.1\ntracer=%s\nclock=%s\nmode=discard\n"
		 "started=2026-01-02T03:04:05Z\n", tracer, clock);
	gen_meta(g, PB_META_SESSION, session, strlen(session), NULL);
	clock_pair(g, GEN_START);
}

void gen_end(struct gen *g, uint64_t time)
{
	struct pb_meta_end end = { .threads = 1 };

	clock_pair(g, time);
	gen_meta(g, PB_META_END, &end, sizeof(end), NULL);
	gen_close(g);
}

void gen_close(struct gen *g)
{
	close(g->chunks);
	close(g->meta);
}

void gen_image(struct gen *g, uint32_t image, uint32_t pid, const char *path)
{
	struct pb_meta_image m = { .image = image, .pid = pid };

	gen_meta(g, PB_META_IMAGE, &m, sizeof(m), path);
}

static void write_analysis(struct gen *g, uint32_t number, const char *soname,
			   const char *const *names, uint32_t nr)
{
	struct pb_analysis a = {
		.magic = PB_ANALYSIS_MAGIC, .version = PB_ANALYSIS_VERSION, .build_id_len = 4,
		.nr_funcs = nr, .nr_refused = nr, .funcs_offset = pb_align_up(sizeof(a), 8),
		.text_start = 0x1000, .text_end = 0x1000 + 256ull * nr,
		.image_start = 0, .image_end = 0x2000 + 256ull * nr,
	};
	struct pb_func *funcs = calloc(nr + 1, sizeof(*funcs));
	char *strings = calloc(nr + 2, 128), name[32];
	size_t len = 1;
	int fd;

	a.soname = a.path = (uint32_t)len;
	len += (size_t)sprintf(strings + len, "%s", soname) + 1;
	for (uint32_t i = 0; i < nr; i++) {
		funcs[i] = (struct pb_func){ .addr = 0x1000 + 256ull * i, .size = 256,
					     .name = (uint32_t)len, .refused = PB_REFUSED_SHORT };
		len += (size_t)sprintf(strings + len, "%.120s", names[i]) + 1;
	}
	a.recipes_offset = a.nops_offset = a.funcs_offset + nr * sizeof(*funcs);
	a.strings_offset = a.recipes_offset;
	a.strings_size = len;
	a.size = a.strings_offset + len;
	snprintf(name, sizeof(name), "modules/%u", number);
	fd = create(g->dir, name, 0);
	put(fd, &a, sizeof(a));
	put(fd, funcs, nr * sizeof(*funcs));
	put(fd, strings, len);
	close(fd);
	free(funcs);
	free(strings);
}

void gen_module(struct gen *g, uint32_t image, uint32_t module, uint32_t pid, uint32_t first_site,
		uint64_t bias, const char *const *names, uint32_t nr)
{
	struct pb_meta_module m = {
		.image = image, .module = module, .pid = pid, .first_site = first_site,
		.bias = bias, .clock = GEN_START, .nr_funcs = nr,
	};
	char path[64];

	snprintf(path, sizeof(path), "/usr/lib/module%u.so", module);
	gen_meta(g, PB_META_MODULE, &m, sizeof(m), path);
	write_analysis(g, module, strrchr(path, '/') + 1, names, nr);
}

void gen_thread(struct gen *g, uint32_t serial, uint32_t pid, uint32_t tid, const char *comm,
		uint64_t lost, uint64_t no_return)
{
	struct pb_ring_thread t = {
		.serial = serial, .pid = pid, .tid = tid, .image = 1, .lost = lost,
		.no_return = no_return,
	};

	gen_meta(g, PB_META_THREAD, &t, sizeof(t), comm);
}

void gen_born(struct gen *g, uint32_t serial, uint32_t pid, uint32_t tid, uint64_t start)
{
	struct pb_ring_thread t = { .serial = serial, .pid = pid, .tid = tid, .image = 1,
				    .start = start };

	gen_meta(g, PB_META_THREAD, &t, sizeof(t), "t");
}

void gen_chunk(struct gen *g, uint32_t serial, uint32_t tid, uint64_t seq, uint64_t start)
{
	g->head = (struct pb_chunk){
		.state = PB_CHUNK_FULL, .serial = serial, .image = 1, .pid = 100, .tid = tid,
		.seq = seq, .start = start, .uses = 1,
	};
	g->nr = 0;
	g->last = start;
}

void gen_chunk_write(struct gen *g)
{
	g->head.used = g->nr * 8;
	put(g->chunks, &g->head, sizeof(g->head));
	put(g->chunks, g->words, g->nr * 8);
	g->nr = 0;
}

void gen_chunk_copy(struct gen *g, uint32_t records)
{
	struct pb_data_header h = { .magic = PB_DATA_MAGIC_OPEN, .version = PB_DATA_VERSION };
	char path[4200];
	int fd;

	g->head.state = PB_CHUNK_HELD;
	g->head.used = records * 8;
	snprintf(path, sizeof(path), "%s/open", g->dir);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
	if (fd < 0 || pwrite(fd, &h, sizeof(h), 0) != sizeof(h) ||
	    pwrite(fd, &g->head, sizeof(g->head), PB_CHUNK_SIZE) != sizeof(g->head) ||
	    pwrite(fd, g->words, g->head.used, PB_CHUNK_SIZE + sizeof(g->head)) != g->head.used)
		err(1, "%s", path);
	close(fd);
}

void gen_word(struct gen *g, uint64_t word)
{
	if (g->nr == pb_array_size(g->words))
		errx(1, "chunk is full");
	g->words[g->nr++] = word;
}

/* Writes PB_EXT_TIME if a field of `bits` bits can't express the time from g->last to `time`. */
static void reach(struct gen *g, uint64_t time, unsigned bits)
{
	int64_t distance = (int64_t)(time - g->last);

	if (distance >= 1ll << (bits - 1) || distance < -(1ll << (bits - 1)))
		gen_ext1(g, PB_EXT_TIME, 0, 0, time);
	g->last = time;
}

void gen_leaf(struct gen *g, uint32_t site, uint64_t start, uint64_t end)
{
	if (end - start >= 1u << PB_DUR_BITS) {
		gen_long(g, site, start, end);
		return;
	}
	reach(g, end, PB_LEAF_BITS);
	gen_word(g, end << PB_LEAF_SHIFT | (end - start) << PB_DUR_SHIFT |
		 (uint64_t)site << PB_SITE_SHIFT | PB_TAG_LEAF);
}

void gen_entry(struct gen *g, uint32_t site, uint64_t time)
{
	reach(g, time, PB_TIME_BITS);
	gen_word(g, time << PB_TIME_SHIFT | (uint64_t)site << PB_SITE_SHIFT | PB_TAG_ENTRY);
}

void gen_exit(struct gen *g, uint32_t site, uint64_t time)
{
	reach(g, time, PB_TIME_BITS);
	gen_word(g, time << PB_TIME_SHIFT | (uint64_t)site << PB_SITE_SHIFT | PB_TAG_EXIT);
}

void gen_ext(struct gen *g, enum pb_ext_type type, uint32_t site, uint64_t time)
{
	reach(g, time, PB_EXT_TIME_BITS);
	gen_word(g, pb_ext_word(type, 1, site, time));
}

void gen_ext1(struct gen *g, enum pb_ext_type type, uint32_t site, uint64_t time, uint64_t payload)
{
	if (type == PB_EXT_END || type == PB_EXT_FUNC)
		reach(g, time, PB_EXT_TIME_BITS);
	if (type == PB_EXT_TIME)
		g->last = payload;
	gen_word(g, pb_ext_word(type, 2, site, time));
	gen_word(g, payload);
}

void gen_tail_leaf(struct gen *g, uint32_t site, uint64_t start, uint64_t end)
{
	reach(g, end, PB_EXT_TIME_BITS);
	gen_word(g, pb_ext_record(TAIL_LEAF, site, end));
	gen_word(g, pb_ext_address(end - start));
}

void gen_long(struct gen *g, uint32_t site, uint64_t start, uint64_t end)
{
	gen_word(g, pb_ext_record(LONG, site, 0));
	gen_word(g, start);
	gen_word(g, end);
	g->last = end;
}
