/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the fuzzers share. A fuzzer is a file with LLVMFuzzerTestOneInput() and
 * some of the functions below; two drivers run it:
 *
 *   libFuzzer    clang -fsanitize=fuzzer (meson -Dlibfuzzer=true): guided by
 *                coverage
 *   driver.c     anywhere: mutates the seeds, in child processes, so that an
 *                input that killed its process is kept
 *
 * With both, `fuzz_NAME FILE...` runs inputs once, to repeat a finding, and
 * `fuzz_NAME --seeds DIR` writes the seeds: real files, inputs made by the fuzzer,
 * and earlier findings, which are kept in found/NAME. A finding is an input that
 * kills the process, makes a sanitizer report, takes too long or takes too much memory.
 */
#ifndef FUZZ_DRIVER_H
#define FUZZ_DRIVER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FUZZ_INPUT_MAX	(1u << 20)

/* If x is false, this is a finding, which ends the process. */
#define FUZZ_CHECK(x) do { if (!(x)) fuzz_found(__FILE__, __LINE__, #x); } while (0)
void fuzz_found(const char *file, int line, const char *what) __attribute__((noreturn));

/* --- what a fuzzer defines --- */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Calls fuzz_seed() with each seed. */
void fuzz_seeds(void);

/* Optional: makes one mutation that suits the input's format; returns the new size.
 * The driver also makes mutations of its own. */
size_t fuzz_mutate(uint8_t *data, size_t size, size_t max, unsigned seed) __attribute__((weak));

/* Optional, with driver.c only. fuzz_summary() prints in one line what the rounds did, as counted
 * in `counts`, which has fuzz_counts_size bytes. It returns false if they tested too little. */
extern const size_t fuzz_counts_size __attribute__((weak));
bool fuzz_summary(const void *counts) __attribute__((weak));

/* Optional: true if an input may harm its process. A death is then no finding, as
 * long as deaths are rare. */
extern const bool fuzz_wild __attribute__((weak));

/* --- what a fuzzer may use --- */
void fuzz_seed(const void *data, size_t size);
/* Adds a whole file as a seed, if it is there and at most max bytes long. */
bool fuzz_seed_file(const char *path, size_t max);
/* Returns a file's bytes, to be freed, or NULL. */
uint8_t *fuzz_read_file(const char *path, size_t max, size_t *size);
/* Memory of fuzz_counts_size bytes, zero at first, shared by all rounds. */
void *fuzz_counts(void);
/* A temporary directory, in $TMPDIR or in memory; removed when the process exits. */
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
/* A number at or near a usual limit: 0, powers of two, the largest of a type. */
uint64_t fuzz_nasty(struct fuzz_rng *r);
/* Writes a value of 1, 2, 4 or 8 bytes near `at`, or flips a bit there. */
void fuzz_poke(struct fuzz_rng *r, uint8_t *data, size_t size, size_t at);

/* Takes an input apart, from its start. Past its end everything reads as zero. */
struct fuzz_input {
	const uint8_t *p;
	size_t left;
};
uint64_t fuzz_take(struct fuzz_input *in, unsigned bytes);
/* Takes a block, which is preceded by its length in `bytes` bytes. *size: this length or, if less is left, what is left. */
const uint8_t *fuzz_take_block(struct fuzz_input *in, unsigned bytes, size_t *size);
#endif
