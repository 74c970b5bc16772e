/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the fuzzers share. A fuzzer is a file with LLVMFuzzerTestOneInput() and
 * some of the functions below; two drivers run it:
 *
 *   libFuzzer    clang -fsanitize=fuzzer (meson -Dlibfuzzer=true): guided by
 *                coverage
 *   driver.c     anywhere: mutates the seeds, in child processes, so that the
 *                input that killed one is kept
 *
 * Either way `fuzz_NAME FILE...` runs inputs once, to see a finding again, and
 * `fuzz_NAME --seeds DIR` writes what it starts from: real files, what is made
 * for it, and in found/NAME inputs that were findings once. A finding is a death, a
 * sanitizer's report, an input that takes too long or too much memory.
 */
#ifndef FUZZ_DRIVER_H
#define FUZZ_DRIVER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FUZZ_INPUT_MAX	(1u << 20)

/* Ends the process as a finding. */
#define FUZZ_CHECK(x) do { if (!(x)) fuzz_found(__FILE__, __LINE__, #x); } while (0)
void fuzz_found(const char *file, int line, const char *what) __attribute__((noreturn));

/* --- what a fuzzer has --- */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Calls fuzz_seed() for each input to start from. */
void fuzz_seeds(void);

/* Optional: one mutation that knows the format; returns the new size. The
 * driver does others itself. */
size_t fuzz_mutate(uint8_t *data, size_t size, size_t max, unsigned seed) __attribute__((weak));

/* Optional, own driver only: what the rounds did, in shared memory at `counts`;
 * false if it proves nothing. Prints one line. */
extern const size_t fuzz_counts_size __attribute__((weak));
bool fuzz_summary(const void *counts) __attribute__((weak));

/* Optional: inputs may harm their process, and that isn't a finding, as long
 * as it is rare. */
extern const bool fuzz_wild __attribute__((weak));

/* --- what a fuzzer may use --- */
void fuzz_seed(const void *data, size_t size);
/* A whole file as a seed, if it is there and at most max bytes long. */
bool fuzz_seed_file(const char *path, size_t max);
/* A file's bytes (malloc), or NULL. */
uint8_t *fuzz_read_file(const char *path, size_t max, size_t *size);
/* Zeroed memory of fuzz_counts_size bytes, the same for all rounds. */
void *fuzz_counts(void);
/* A directory that goes when the process ends, in TMPDIR or in memory. */
const char *fuzz_directory(void);

/* Repeatable random numbers. */
struct fuzz_rng {
	uint64_t state;
};
void fuzz_rng_seed(struct fuzz_rng *r, uint64_t seed);
uint64_t fuzz_random(struct fuzz_rng *r);
static inline size_t fuzz_below(struct fuzz_rng *r, size_t n)
{
	return n ? (size_t)(fuzz_random(r) % n) : 0;
}
/* Numbers that limits are made of. */
uint64_t fuzz_nasty(struct fuzz_rng *r);
/* Writes a value of 1, 2, 4 or 8 bytes near `at`, or flips a bit there. */
void fuzz_poke(struct fuzz_rng *r, uint8_t *data, size_t size, size_t at);

/* Cuts an input up: what is behind its end reads as zero. */
struct fuzz_input {
	const uint8_t *p;
	size_t left;
};
uint64_t fuzz_take(struct fuzz_input *in, unsigned bytes);
/* A piece whose length stands before it in `bytes` bytes; *size is what there is. */
const uint8_t *fuzz_take_block(struct fuzz_input *in, unsigned bytes, size_t *size);
#endif
