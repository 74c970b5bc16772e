/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * All hostile programs include this file. It defines check() and check_eq(). If a check fails, the
 * program prints a message and ends. The file also defines the functions of the marker pattern.
 * run_hostile looks for this pattern in the call tree:
 *
 *   marker_begin() { marker_a() { marker_b(); } marker_c(); }
 *
 * What a program does decides its folder:
 *
 *   calls	passes arguments, results and registers in every way
 *   processes	makes processes and ends them
 *   resources	closes, changes or forbids what the tracer uses: descriptors, memory, environment,
 *		privileges, system calls
 *   signals	handles, blocks or sends signals; causes faults
 *   stacks	makes its own stacks, or fills or overflows a stack
 *   threads	makes, ends or blocks many threads
 *   unwinding	leaves calls by jumps or exceptions, or walks over calls
 *
 * The comment at the top of a program tells run_hostile how to run and check the program. The bare
 * run is the run without tracing. The comment may have these lines:
 *
 *   @flags F...	compiler flags besides -O2 -g -pthread -fno-optimize-sibling-calls
 *   @libs L...		libraries
 *   @plugin FILE	also build FILE into plugin.so beside the program
 *   @args A...		arguments
 *   @needs root
 *   @status N		exit status of the bare run (-N: killed by signal N)
 *   @markers N PATH	a traced run that lost nothing has N calls of marker_begin. Their
 *			ancestors end in PATH (a/b: b's caller is a). If there are several PATHs,
 *			one of them must match. Without PATH, any ancestors will do
 *   @calls FUNC N	FUNC was called N times (>=N: at least)
 *   @no_return N [M]	at most N calls may be recorded without their return. If eBPF programs are
 *			attached to the program's returns, the limit is M
 *   @lost N		at most N calls may be lost when only the program's own functions are traced
 *   @serve N		also run the program with control files, and change the text N times
 *			during that run (see may_end())
 *   @timeout N		the bare run needs less than N seconds on an idle machine. A run that takes
 *			longer than pbtest.PATIENCE times N seconds counts as hung. For a traced
 *			run, N is multiplied by four, and 20 is added
 *   @stdin wait S	the program ends when it gets a byte. In the bare run, run_hostile sends the
 *			byte S seconds after the program has printed "ready" to stderr. In a
 *			traced run, the byte comes at once; in the run of @serve, after the changes
 *   @buffer SIZE	record's -b
 *   @quick F...	compiler flags of quick runs. They follow those of @flags. In the numbers of
 *			@markers, @calls and @no_return, macros that -D defines there may be used,
 *			as in 2*NR+1
 *   @slow W...		ways of tracing (run_hostile's names) that quick runs leave out. Without
 *			W, quick runs leave out the program
 *
 * Functions called on_* are signal handlers: they may appear anywhere in the tree.
 *
 * The output on stdout must be the same in all runs. So measured values go to stderr.
 */
#ifndef HOSTILE_H
#define HOSTILE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define KEEP __attribute__((noipa))
#ifdef __cplusplus
#define HOSTILE_UNUSED [[maybe_unused]]
#else
#define HOSTILE_UNUSED __attribute__((unused))
#endif

/* The value of x. The compiler must evaluate x, and can't predict the value. */
#define opaque(x) ({ __typeof__(x) opaque_ = (x); __asm__ volatile("" : "+r"(opaque_)); opaque_; })

#define die(...) do { \
	fflush(stdout); \
	fprintf(stderr, "%s:%d: ", __FILE__, __LINE__); \
	fprintf(stderr, __VA_ARGS__); \
	fputc('\n', stderr); \
	_exit(99); \
} while (0)

#define check(cond) do { if (!(cond)) die("check failed: %s (errno %d)", #cond, errno); } while (0)
#define check_eq(a, b) do { \
	long long a_ = (long long)(a), b_ = (long long)(b); \
	if (a_ != b_) \
		die("%s is %lld, not %s = %lld", #a, a_, #b, b_); \
} while (0)

HOSTILE_UNUSED static KEEP int marker_b(int n) { return opaque(n) + 1; }
HOSTILE_UNUSED static KEEP int marker_a(int n) { return opaque(marker_b(n)) + 1; }
HOSTILE_UNUSED static KEEP int marker_c(int n) { return opaque(n) + 3; }
HOSTILE_UNUSED static KEEP int marker_begin(int n)
{
	int v = opaque(marker_a(n));

	v += opaque(marker_c(n));
	if (v != 2 * n + 5)
		die("marker %d gave %d", n, v);
	return opaque(v);
}

/* Returns whether the program may end. With @serve, the program must go on until run_hostile has
 * made all changes of the text. Then run_hostile sends a byte to stdin. In other runs, may_end() is
 * true at once. */
static inline int may_end(void)
{
	struct pollfd p = { 0, POLLIN, 0 };

	return !getenv("HOSTILE_SERVED") || poll(&p, 1, 0) != 0;
}

static inline uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

/* A small deterministic random-number generator. The programs use constant seeds, so all runs get
 * the same numbers. */
static inline uint32_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return *state >> 33;
}
#endif
