/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For tests of the module analysis. Compiles files in a private directory, and maps the files'
 * analyses. */
#ifndef PB_TEST_MODULE_FILES_H
#define PB_TEST_MODULE_FILES_H
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../test_dir.h"
#include "abi/analysis_access.h"
#include "abi/analysis_check.h"
#include "base/base.h"
#include "module/module.h"


struct view {
	const struct pb_analysis *a;
	size_t size;
};

static inline void write_file(const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

/* Runs a command in the private directory. Skips the test if the command's compiler isn't
 * installed. */
static inline void build(const char *command)
{
	char line[1024];
	int status;

	snprintf(line, sizeof(line), "cd %s && %s 2>err", dir, command);
	status = system(line);
	if (status == 127 << 8)
		skip();
	if (status) {
		snprintf(line, sizeof(line), "cat %s/err", dir);
		print_message("%s\n", command);
		assert_true(system(line) >= 0);
		fail();
	}
}

static inline int open_module(const char *name, unsigned flags, const char *cache)
{
	struct pb_module_options o = { flags, cache };
	char path[256], err[256] = "";
	int elf, fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	elf = open(path, O_RDONLY);
	assert_true(elf >= 0);
	fd = pb_module_open(elf, path, &o, err, sizeof(err));
	close(elf);
	if (fd < 0)
		print_message("%s: %s\n", name, err);
	return fd;
}

static inline struct view map(int fd)
{
	struct stat st;
	void *p;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	close(fd);
	assert_int_equal(pb_analysis_check(p, (size_t)st.st_size), 0);
	return (struct view){ p, (size_t)st.st_size };
}

static inline struct view analyse(const char *name, unsigned flags)
{
	return map(open_module(name, flags | PB_MODULE_NO_CACHE, NULL));
}

static inline void drop(struct view v)
{
	munmap((void *)v.a, v.size);
}

static inline const struct pb_func *func(struct view v, const char *name)
{
	const struct pb_func *f = pb_analysis_funcs(v.a);

	for (uint32_t i = 0; i < v.a->nr_funcs; i++)
		if (!strcmp(pb_func_name(v.a, &f[i]), name))
			return &f[i];
	return NULL;
}

#define assert_site(v, name, k) do {						\
	const struct pb_func *f_ = func(v, name);				\
	assert_non_null(f_);							\
	assert_int_equal(f_->refused, PB_REFUSED_NOT);				\
	assert_int_equal(f_->kind, k);						\
} while (0)

#define assert_refused(v, name, reason) do {					\
	const struct pb_func *f_ = func(v, name);				\
	assert_non_null(f_);							\
	assert_int_equal(f_->refused, PB_REFUSED_##reason);			\
} while (0)

/* Changes each byte of the header and of the first tables, one at a time. The check must not crash.
 * It must refuse many of the changed files and all truncated files. */
static inline void check_damaged(const char *name)
{
	struct view v = analyse(name, 0);
	uint8_t *copy = aligned_alloc(8, pb_align_up(v.size, (size_t)8));
	unsigned refused = 0;

	for (size_t at = 0; at < v.size && at < 8192; at++) {
		memcpy(copy, v.a, v.size);
		copy[at] ^= 0x81;
		refused += pb_analysis_check(copy, v.size) != 0;
	}
	assert_true(refused > 200);
	for (size_t size = 0; size < sizeof(struct pb_analysis) + 8; size++)
		assert_int_equal(pb_analysis_check(v.a, size), -EINVAL);
	assert_int_equal(pb_analysis_check(v.a, v.size - 1), -EINVAL);
	free(copy);
	drop(v);
}

#endif
