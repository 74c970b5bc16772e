/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The views write to a memfd, whose text is checked at the end. */
#include "views.h"

#include <err.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../unit/recordings/gen_data.h"
#include "support.h"
#include "view/filter.h"
#include "view/options.h"

static const char *const names[FUZZ_NR_FILES] = { "chunks", "meta", "modules/1" };

const char *fuzz_store(const struct fuzz_file files[FUZZ_NR_FILES])
{
	static char dir[PATH_MAX];
	char path[PATH_MAX + 16];

	if (!*dir) {
		snprintf(dir, sizeof(dir), "%s/data", fuzz_directory());
		snprintf(path, sizeof(path), "%s/modules", dir);
		mkdir(dir, 0700);
		mkdir(path, 0700);
	}
	for (int i = 0; i < FUZZ_NR_FILES; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		fuzz_write_file(path, files[i].data, files[i].size);
	}
	return dir;
}

void fuzz_scenario(const char *name, uint64_t n, struct fuzz_file files[FUZZ_NR_FILES])
{
	char dir[PATH_MAX], path[PATH_MAX + 16];

	snprintf(dir, sizeof(dir), "%s/scenario", fuzz_directory());
	if (gen_scenario(name, dir, n))
		errx(2, "%s: no such scenario", name);
	for (int i = 0; i < FUZZ_NR_FILES; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		files[i].data = fuzz_read_file(path, FUZZ_INPUT_MAX, &files[i].size);
		if (!files[i].data)
			err(2, "%s", path);
	}
}

static void run_reports(struct pb_view *v)
{
	struct pb_report r;

	if (!pb_report_make(v, &r)) {
		pb_report_sort(&r, PB_SORT_AVG);
		pb_report_print(v, &r, PB_SORT_AVG);
		pb_report_csv(v, &r);
		pb_report_json(v, &r);
		pb_report_diff(v, v, &r, &r, PB_SORT_SELF, PB_FORMAT_TEXT);
		pb_report_free(&r);
	}
}

static void add_filters(struct pb_view *v)
{
	char error[500];

	v->filters = pb_filters_new(v->data);
	if (!v->filters)
		return;
	pb_filters_add(v->filters, PB_FILTER_IN, PB_MATCH_GLOB, "*o*", error, sizeof(error));
	pb_filters_add(v->filters, PB_FILTER_OUT, PB_MATCH_REGEX, "^h", error, sizeof(error));
	pb_filters_add(v->filters, PB_FILTER_FOCUS, PB_MATCH_GLOB, "*r*", error, sizeof(error));
}

static void run_views(struct pb_view *v)
{
	pb_view_graph_text(v, PB_FG_DEFAULT | PB_FG_PROC | PB_FG_ABSTIME | PB_FG_TAIL);
	pb_view_function_text(v);
	pb_view_chrome(v);
	pb_view_raw(v);
	pb_view_flame(v);
	pb_view_dot(v);
	pb_view_graph(v, v->filters != NULL);
	run_reports(v);
}

/* The only control characters that text for a terminal may have are newlines and tabs. The
 * characters of C1 (U+0080 to U+009F) are control characters, too. */
static void check_text(int fd)
{
	static char buf[1 << 16];
	bool c2 = false;
	ssize_t n;

	for (off_t at = 0; (n = pread(fd, buf, sizeof(buf), at)) > 0; at += n)
		for (ssize_t i = 0; i < n; i++) {
			unsigned char c = (unsigned char)buf[i];

			FUZZ_CHECK((c >= ' ' && c != 0x7f) || c == '\n' || c == '\t');
			FUZZ_CHECK(!c2 || c < 0x80 || c >= 0xa0);
			c2 = c == 0xc2;
		}
}

void fuzz_run_views(const char *dir)
{
	static struct pb_out out;
	static uint32_t tids[] = { 100, 101 };
	struct pb_view v = { .out = &out, .to = UINT64_MAX };
	char error[5000] = "";

	v.data = pb_data_open(dir, 0, error, sizeof(error));
	if (!v.data) {
		FUZZ_CHECK(*error);
		return;
	}
	out = (struct pb_out){ .fd = memfd_create("text", MFD_CLOEXEC) };
	run_views(&v);
	pb_view_info(&v, false, false);
	pb_view_info(&v, true, true);
	v.min_ns = 100;
	v.max_depth = 3;
	v.from = 1 << 20;
	add_filters(&v);
	run_views(&v);
	v.tids = tids;
	v.nr_tids = 2;
	pb_view_graph_text(&v, PB_FG_DEFAULT);
	pb_filters_free(v.filters);
	pb_out_flush(&out);
	check_text(out.fd);
	close(out.fd);
	pb_data_close(v.data);
}
