/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Breaks data directories and runs every view on them. A view may say that it
 * can't read one; it must not crash, hang, or take memory without bound (run
 * it under ASan and UBSan).
 *
 *   fuzz_decoder [SEED [ROUNDS]]     a failing round is repeated by its seed
 *
 * As a libFuzzer target the input is the three files, each behind its length.
 */
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../unit/gen_data.h"
#include "view/filter.h"
#include "view/options.h"

static char dir[] = "/tmp/pb-fuzz-decoder-XXXXXX";
static const char *const files[] = { "chunks", "meta", "modules/1" };
#define NR_FILES 3
#define FILE_MAX_BYTES (1 << 20)

struct file {
	uint8_t *data;
	size_t size;
};

static void path_of(char *path, size_t len, int file)
{
	snprintf(path, len, "%s/%s", dir, files[file]);
}

static void load(struct file *f, int file)
{
	char path[128];
	int fd;

	path_of(path, sizeof(path), file);
	f->data = malloc(FILE_MAX_BYTES);
	fd = open(path, O_RDONLY);
	f->size = fd < 0 ? 0 : (size_t)read(fd, f->data, FILE_MAX_BYTES);
	close(fd);
}

static void store(const uint8_t *data, size_t size, int file)
{
	char path[128];
	int fd;

	path_of(path, sizeof(path), file);
	fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		err(1, "%s", path);
	close(fd);
}

static void run_reports(struct pb_view *v)
{
	struct pb_report r;

	if (!pb_report_make(v, &r)) {
		pb_report_sort(&r, PB_SORT_AVG);
		pb_report_print(v, &r, PB_SORT_AVG);
		pb_report_csv(v, &r);
		pb_report_json(v, &r);
		pb_report_diff(v, &r, &r);
		pb_report_free(&r);
	}
}

static void run_views(void)
{
	static struct pb_out out;
	struct pb_view v = { .out = &out, .to = UINT64_MAX };
	char error[5000];

	v.data = pb_data_open(dir, error, sizeof(error));
	if (!v.data)
		return;
	out.fd = open("/dev/null", O_WRONLY);
	pb_view_graph_text(&v, PB_FG_DEFAULT | PB_FG_PROC | PB_FG_ABSTIME | PB_FG_TAIL);
	pb_view_function_text(&v);
	pb_view_chrome(&v);
	pb_view_raw(&v);
	pb_view_flame(&v);
	pb_view_dot(&v);
	pb_view_graph(&v, false);
	pb_view_info(&v, false, false);
	pb_view_info(&v, true, true);
	run_reports(&v);
	v.min_ns = 100;
	v.max_depth = 3;
	v.from = 1 << 20;
	v.filters = pb_filters_new(v.data);
	if (v.filters) {
		pb_filters_add(v.filters, PB_FILTER_IN, PB_MATCH_GLOB, "*o*", error, sizeof(error));
		pb_filters_add(v.filters, PB_FILTER_OUT, PB_MATCH_REGEX, "^h", error, sizeof(error));
		pb_filters_add(v.filters, PB_FILTER_FOCUS, PB_MATCH_GLOB, "*r*", error, sizeof(error));
	}
	pb_view_graph_text(&v, PB_FG_DEFAULT);
	pb_view_chrome(&v);
	pb_view_flame(&v);
	pb_view_dot(&v);
	pb_view_graph(&v, v.filters != NULL);
	run_reports(&v);
	pb_filters_free(v.filters);
	pb_out_flush(&out);
	close(out.fd);
	pb_data_close(v.data);
}

static uint64_t rng;

static uint64_t next_random(void)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return rng;
}

/* A word that means something in one of the files, or nothing. */
static uint64_t interesting(void)
{
	static const uint64_t values[] = {
		0, 1, 7, 8, 255, 256, 0x7fffffff, 0x80000000, 0xffffffff, 1ull << 32, 1ull << 63,
		~0ull, ~0ull << 22,
	};
	uint64_t site = next_random() % 12, time = GEN_START + next_random() % 100000;

	switch (next_random() % 8) {
	case 0:
		return values[next_random() % (sizeof(values) / sizeof(values[0]))];
	case 1:
		return time << 22 | site << 2 | 2;
	case 2:
		return time << 22 | site << 2 | 3;
	case 3:
		return time << 42 | next_random() % 5000 << 22 | site << 2 | 1;
	case 4: case 5:
		return pb_ext_word((enum pb_ext_type)(next_random() % 11), (unsigned)(next_random() % 5),
				   (uint32_t)site, time & 0xfffffff);
	case 6:
		return time;
	default:
		return next_random();
	}
}

static void mutate(struct file *f)
{
	size_t at, len;

	if (f->size < 16)
		return;
	at = next_random() % f->size;
	switch (next_random() % 7) {
	case 0:
		f->data[at] ^= (uint8_t)(1 << next_random() % 8);
		break;
	case 1: case 2:
		at &= ~7ull;
		if (at + 8 <= f->size) {
			uint64_t word = interesting();

			memcpy(f->data + at, &word, 8);
		}
		break;
	case 3:
		if (at % 4 == 0 && at + 4 <= f->size) {
			uint32_t word = (uint32_t)interesting();

			memcpy(f->data + at, &word, 4);
		}
		break;
	case 4:		/* a piece copied elsewhere */
		len = next_random() % 512 & ~7ull;
		at &= ~7ull;
		if (at + len <= f->size && len < f->size)
			memmove(f->data + (next_random() % (f->size - len) & ~7ull), f->data + at, len);
		break;
	case 5:
		if (next_random() % 8 == 0)
			f->size = at;
		break;
	case 6:		/* the file again behind itself: chunks twice, deeper stacks */
		len = f->size - at;
		if (f->size + len <= FILE_MAX_BYTES && next_random() % 8 == 0) {
			memcpy(f->data + f->size, f->data + at, len);
			f->size += len;
		}
		break;
	}
}

static void make_dirs(void)
{
	char path[128];

	if (!mkdtemp(dir))
		err(1, "mkdtemp");
	snprintf(path, sizeof(path), "%s/modules", dir);
	mkdir(path, 0700);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool made;

	if (!made)
		make_dirs();
	made = true;
	for (int i = 0; i < NR_FILES; i++) {
		uint32_t len = 0;

		if (size >= 4) {
			memcpy(&len, data, 4);
			data += 4;
			size -= 4;
		}
		if (len > size)
			len = (uint32_t)size;
		store(data, len, i);
		data += len;
		size -= len;
	}
	run_views();
	return 0;
}

#ifndef FUZZ_LIBFUZZER
static void round_of(uint64_t seed, unsigned nr_scenarios)
{
	struct file f[NR_FILES];
	unsigned scenario;

	rng = seed * 0x9e3779b97f4a7c15ull | 1;
	for (int i = 0; i < 8; i++)
		next_random();
	scenario = (unsigned)(next_random() % nr_scenarios);
	gen_scenario(gen_scenarios[scenario], dir, 1000 + next_random() % 3000);
	for (int i = 0; i < NR_FILES; i++) {
		unsigned nr = 1 + (unsigned)(next_random() % 40);

		load(&f[i], i);
		/* mostly the records; a broken header ends everything early */
		if (i == 0 || next_random() % 4 == 0)
			while (nr--)
				mutate(&f[i]);
		store(f[i].data, f[i].size, i);
		free(f[i].data);
	}
	run_views();
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	uint64_t rounds = argc > 2 ? strtoull(argv[2], NULL, 10) : 300;
	char command[128];
	unsigned nr = 0;
	struct rusage usage;

	make_dirs();
	while (gen_scenarios[nr])
		nr++;
	for (uint64_t i = 0; i < rounds; i++) {
		alarm(60);	/* a hang ends here; the seed is the last one printed on a terminal */
		if (isatty(STDERR_FILENO))
			fprintf(stderr, "\rseed %llu", (unsigned long long)(seed + i));
		round_of(seed + i, nr);
	}
	getrusage(RUSAGE_SELF, &usage);
	fprintf(stderr, "\n%llu rounds, largest resident size %ld KiB\n", (unsigned long long)rounds,
		usage.ru_maxrss);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command) != 0;
}
#endif
