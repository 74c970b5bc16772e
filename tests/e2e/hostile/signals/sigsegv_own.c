/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Write barriers like those of garbage collectors: a store to a protected page faults, and a
 * SIGSEGV handler permits access with mprotect. The faulting stores and loads are at functions'
 * entries. Also tests the SIGBUS that a load past the end of a mapped file causes. si_code and
 * si_addr must be exact.
 * @markers 200 main/one_cycle
 */
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include "../hostile.h"

#define PAGES 64
static char *heap;
static volatile int faults, dirty[PAGES];
static sigjmp_buf env;

static KEEP void store_byte(char *p, int v) { *(volatile char *)p = v; }
static KEEP int load_byte(const char *p) { return *(const volatile char *)p; }

static void on_segv(int sig, siginfo_t *si, void *uc)
{
	char *page = (char *)((uintptr_t)si->si_addr & -4096ul);

	if (sig == SIGBUS) {
		check_eq(si->si_code, BUS_ADRERR);
		siglongjmp(env, 2);
	}
	if (page < heap || page >= heap + PAGES * 4096)
		siglongjmp(env, 1);
	check_eq(si->si_code, SEGV_ACCERR);
	dirty[(page - heap) / 4096]++;
	faults++;
	if (mprotect(page, 4096, PROT_READ | PROT_WRITE))
		die("mprotect: %m");
}

static KEEP void one_cycle(int n, const char *past_heap)
{
	int i;

	check(!mprotect(heap, PAGES * 4096, n & 1 ? PROT_NONE : PROT_READ));
	faults = 0;
	for (i = 0; i < PAGES; i++)
		dirty[i] = 0;
	for (i = 0; i < PAGES; i++) {
		store_byte(heap + i * 4096 + n, i + n);
		store_byte(heap + i * 4096 + n + 1, i);
	}
	check_eq(faults, PAGES);
	for (i = 0; i < PAGES; i++) {
		check_eq(dirty[i], 1);
		check_eq(load_byte(heap + i * 4096 + n), (char)(i + n));
	}
	i = sigsetjmp(env, 1);
	if (!i)
		load_byte(past_heap);
	check_eq(i, 2);
	i = sigsetjmp(env, 1);
	if (!i)
		load_byte((char *)8);
	check_eq(i, 1);
	marker_begin(n);
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = on_segv, .sa_flags = SA_SIGINFO };
	FILE *f = tmpfile();
	char *map;
	int n;

	heap = mmap(NULL, PAGES * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(heap != MAP_FAILED && f);
	map = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fileno(f), 0);
	check(map != MAP_FAILED);
	check(!sigaction(SIGSEGV, &sa, NULL) && !sigaction(SIGBUS, &sa, NULL));
	for (n = 0; n < 200; n++)
		one_cycle(n, map + 4096);
	puts("200 cycles of 64 pages");
	return 0;
}
