/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The interface between fuzzers and drivers. A fuzzer is a file that defines
 * LLVMFuzzerTestOneInput() and some of the other functions in this file. Two drivers can run it:
 *
 *   libFuzzer    clang -fsanitize=fuzzer (meson -Dlibfuzzer=true): guided by
 *                coverage
 *   driver.c     needs only a C compiler. Mutates the seeds, and runs inputs in
 *                child processes. So it can keep an input that killed its process
 *
 * With both drivers, `fuzz_NAME FILE...` runs each input once, to repeat a finding. `fuzz_NAME
 * --seeds DIR` writes the seeds: real files, inputs that the fuzzer makes, and earlier findings.
 * Earlier findings are kept in found/NAME. A finding is an input that kills the process, causes a
 * sanitizer's report, takes too long or takes too much memory.
 */
#ifndef FUZZ_DRIVER_H
#define FUZZ_DRIVER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FUZZ_INPUT_MAX	(1u << 20)

/* If x is false, reports the input as a finding and ends the process. */
#define FUZZ_CHECK(x) do { if (!(x)) fuzz_found(__FILE__, __LINE__, #x); } while (0)
void fuzz_found(const char *file, int line, const char *what) __attribute__((noreturn));

/* --- functions that a fuzzer defines --- */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Calls fuzz_seed() with each seed. */
void fuzz_seeds(void);

/* Optional. Makes one mutation that suits the input's format, and returns the new size. The driver
 * also makes its own mutations. */
size_t fuzz_mutate(uint8_t *data, size_t size, size_t max, unsigned seed) __attribute__((weak));

/* Optional, used by driver.c only. fuzz_counts_size is the size of the memory in which the rounds
 * count their work; fuzz_counts() returns this memory. fuzz_summary() prints the counts in one
 * line, and returns false if the rounds tested too little. */
extern const size_t fuzz_counts_size __attribute__((weak));
bool fuzz_summary(const void *counts) __attribute__((weak));

/* Optional. True if an input may harm its own process. In that case driver.c lets a few processes
 * die without a finding (WILD_SHARE). */
extern const bool fuzz_wild __attribute__((weak));

/* --- functions that a fuzzer may use --- */
void fuzz_seed(const void *data, size_t size);
/* Adds a whole file as a seed, if the file exists and is at most max bytes long. */
bool fuzz_seed_file(const char *path, size_t max);
/* Returns a file's bytes, which the caller frees, or NULL. */
uint8_t *fuzz_read_file(const char *path, size_t max, size_t *size);
/* Returns memory of fuzz_counts_size bytes, which all rounds share. It is zero at first. */
void *fuzz_counts(void);
/* Returns a temporary directory in $TMPDIR, or by default in /dev/shm or /tmp. The directory is
 * removed when the process exits. */
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
/* Returns a number at or near a usual limit: 0, a power of two, the largest number of a type. */
uint64_t fuzz_nasty(struct fuzz_rng *r);
/* Changes the data at offset `at`: flips a bit of the byte there, or writes a value of 1, 2, 4 or 8
 * bytes. The value is cut off at the end of the data. If `at` isn't less than `size`, changes
 * nothing. */
void fuzz_poke(struct fuzz_rng *r, uint8_t *data, size_t size, size_t at);

/* A reader of an input, from start to end. Bytes past the end read as zero. */
struct fuzz_input {
	const uint8_t *p;
	size_t left;
};
uint64_t fuzz_take(struct fuzz_input *in, unsigned bytes);
/* Takes a block. The block's length comes before the block, in `bytes` bytes. *size becomes this
 * length, or the number of remaining bytes if fewer remain. */
const uint8_t *fuzz_take_block(struct fuzz_input *in, unsigned bytes, size_t *size);
#endif
