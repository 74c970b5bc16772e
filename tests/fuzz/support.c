/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The functions of driver.h that both drivers share: seeds, random numbers, files. */
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support.h"

void fuzz_found(const char *file, int line, const char *what)
{
	fprintf(stderr, "%s:%d: found: %s\n", file, line, what);
	abort();
}

/* --- random numbers ----------------------------------------------------- */

void fuzz_rng_seed(struct fuzz_rng *r, uint64_t seed)
{
	r->state = (seed + 1) * 0x9e3779b97f4a7c15ull;
	r->state ^= r->state >> 29;
	if (!r->state)
		r->state = 1;
}

uint64_t fuzz_random(struct fuzz_rng *r)
{
	r->state ^= r->state << 13;
	r->state ^= r->state >> 7;
	r->state ^= r->state << 17;
	return r->state * 0x2545f4914f6cdd1dull >> 8 ^ r->state << 40;
}

uint64_t fuzz_nasty(struct fuzz_rng *r)
{
	static const uint64_t v[] = {
		0, 1, 2, 3, 4, 7, 8, 0x10, 0x7f, 0x80, 0xff, 0x100, 0xfff, 0x1000, 0x7fff, 0xffff,
		0x10000, 0xfffff, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, 0x7fffffffffff,
		0x7fffffffffffffff, 0x8000000000000000, 0xfffffffffffffff8, UINT64_MAX,
	};

	return v[fuzz_below(r, sizeof(v) / sizeof(v[0]))] + fuzz_random(r) % 3 - 1;
}

void fuzz_poke(struct fuzz_rng *r, uint8_t *data, size_t size, size_t at)
{
	size_t width = (size_t)1 << fuzz_random(r) % 4;
	uint64_t value = 0;

	if (at >= size)
		return;
	if (width > size - at)
		width = size - at;
	switch (fuzz_random(r) % 5) {
	case 0:
		data[at] ^= (uint8_t)(1u << fuzz_random(r) % 8);
		return;
	case 1:
		value = fuzz_nasty(r);
		break;
	case 2:
		value = fuzz_random(r);
		break;
	case 3:
		value = fuzz_below(r, size);
		break;
	case 4:
		memcpy(&value, data + at, width);
		value += fuzz_random(r) % 33 - 16;
		break;
	}
	memcpy(data + at, &value, width);
}

/* --- inputs ------------------------------------------------------------- */

uint64_t fuzz_take(struct fuzz_input *in, unsigned bytes)
{
	uint64_t v = 0;
	size_t n = bytes < in->left ? bytes : in->left;

	memcpy(&v, in->p, n);
	in->p += n;
	in->left -= n;
	return v;
}

const uint8_t *fuzz_take_block(struct fuzz_input *in, unsigned bytes, size_t *size)
{
	uint64_t want = fuzz_take(in, bytes);
	const uint8_t *p = in->p;

	*size = want < in->left ? (size_t)want : in->left;
	in->p += *size;
	in->left -= *size;
	return p;
}

uint8_t *fuzz_read_file(const char *path, size_t max, size_t *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	uint8_t *v = NULL;

	if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && (size_t)st.st_size <= max) {
		v = malloc((size_t)st.st_size + 1);
		*size = (size_t)st.st_size;
		if (v && read(fd, v, *size) != (ssize_t)*size) {
			free(v);
			v = NULL;
		}
	}
	if (fd >= 0)
		close(fd);
	return v;
}

/* --- seeds -------------------------------------------------------------- */

struct fuzz_corpus fuzz_corpus;

void fuzz_seed(const void *data, size_t size)
{
	struct fuzz_corpus *c = &fuzz_corpus;

	if (size > FUZZ_INPUT_MAX)
		return;
	c->v = realloc(c->v, (c->n + 1) * sizeof(*c->v));
	if (!c->v)
		err(2, "seeds");
	c->v[c->n].size = size;
	c->v[c->n].data = malloc(size + 1);
	if (!c->v[c->n].data)
		err(2, "seeds");
	if (size)
		memcpy(c->v[c->n].data, data, size);
	c->n++;
}

bool fuzz_seed_file(const char *path, size_t max)
{
	size_t size;
	uint8_t *v = fuzz_read_file(path, max < FUZZ_INPUT_MAX ? max : FUZZ_INPUT_MAX, &size);

	if (v)
		fuzz_seed(v, size);
	free(v);
	return v;
}

void fuzz_write_file(const char *path, const void *data, size_t size)
{
	int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		err(2, "%s", path);
	close(fd);
}

/* Loads earlier findings, and the fuzzer's own seeds. */
void fuzz_load_seeds(void)
{
	DIR *d = opendir(FUZZ_FOUND);
	char path[PATH_MAX];

	for (struct dirent *e; d && (e = readdir(d));) {
		if (*e->d_name == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", FUZZ_FOUND, e->d_name);
		if (!fuzz_seed_file(path, FUZZ_INPUT_MAX))
			errx(2, "%s: can't be read", path);
	}
	if (d)
		closedir(d);
	fuzz_seeds();
}

void fuzz_write_seeds(const char *dir)
{
	char path[PATH_MAX];

	if (mkdir(dir, 0777) && errno != EEXIST)
		err(2, "%s", dir);
	fuzz_load_seeds();
	for (size_t i = 0; i < fuzz_corpus.n; i++) {
		snprintf(path, sizeof(path), "%s/seed-%zu", dir, i);
		fuzz_write_file(path, fuzz_corpus.v[i].data, fuzz_corpus.v[i].size);
	}
}

/* --- shared counts, temporary directory --------------------------------- */

void *fuzz_counts(void)
{
	static void *p;

	if (!p) {
		p = mmap(NULL, &fuzz_counts_size ? fuzz_counts_size : 1, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED)
			err(2, "counts");
	}
	return p;
}

static char directory[PATH_MAX];
static pid_t directory_owner;

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *f)
{
	return remove(path);
}

static void remove_directory(void)
{
	if (directory_owner == getpid())
		nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *fuzz_directory(void)
{
	const char *base = getenv("TMPDIR");

	if (*directory)
		return directory;
	if (!base)
		base = access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm";
	snprintf(directory, sizeof(directory), "%s/patchbay-fuzz-XXXXXX", base);
	if (!mkdtemp(directory))
		err(2, "%s", directory);
	directory_owner = getpid();
	atexit(remove_directory);
	return directory;
}

/* Replaces record_error() in the fuzzers that are linked with --wrap, so that stderr has only
 * findings. Makes the line that record_error() would print on a terminal (reader/say.h), and checks
 * the line. */
void pb_say_v(const char *command, const char *fmt, va_list ap) __attribute__((weak));
int __wrap_record_error(const char *fmt, ...);
int __wrap_record_error(const char *fmt, ...)
{
	char *line = NULL;
	size_t len = 0;
	FILE *terminal = stderr, *f = open_memstream(&line, &len);
	va_list ap;

	if (!f)
		err(2, "open_memstream");
	stderr = f;
	va_start(ap, fmt);
	pb_say_v("record", fmt, ap);
	va_end(ap);
	stderr = terminal;
	fclose(f);
	FUZZ_CHECK(len && line[len - 1] == '\n');
	for (size_t i = 0; i + 1 < len; i++)
		FUZZ_CHECK((unsigned char)line[i] >= ' ' && line[i] != 127);
	free(line);
	return 1;
}
