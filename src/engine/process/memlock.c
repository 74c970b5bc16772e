/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The kernel's mlockall() would lock the whole ring, and so make all of its pages present. It would
 * also count the agent's mappings against RLIMIT_MEMLOCK. So for MCL_CURRENT this file locks the
 * mappings in /proc/self/maps one by one, except the agent's:
 *
 *   - If the program's mappings are within the limit, no privilege is needed.
 *   - If they aren't, the kernel decides whether the process may lock them: mlockall()
 *     is called with MCL_ONFAULT, which faults no page in. If this call succeeds, the
 *     agent's mappings are unlocked again.
 *
 * MCL_FUTURE is left to the kernel; pages.c unlocks the mappings that the agent makes
 * later.
 *
 * If the process has a seccomp filter, opening /proc/self/maps may be fatal. In this case
 * everything is locked with MCL_ONFAULT, also the agent's pages. The agent doesn't see an
 * mlockall() that is made by a raw system call.
 */
#include <asm/errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include "engine/process/memlock.h"
#include "base/pages.h"
#include "base/sys.h"
#include "engine/process/replace.h"
#include "engine/sandbox.h"

#define ALL_FLAGS	(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT)
#define USER_END	(1ull << 63)	/* the vsyscall page lies above this address */

typedef int mlockall_fn(int flags);

static mlockall_fn *original_mlockall;

struct maps {
	int fd;
	size_t at, used;
	char text[512];
};

static int next_char(struct maps *m)
{
	if (m->at == m->used) {
		long n;

		do
			n = pb_sys(SYS_read, m->fd, m->text, sizeof(m->text));
		while (n == -EINTR);
		if (n <= 0)
			return -1;
		m->at = 0;
		m->used = (size_t)n;
	}
	return (uint8_t)m->text[m->at++];
}

static bool read_hex(struct maps *m, int end, uint64_t *v)
{
	int c;

	*v = 0;
	while ((c = next_char(m)) != end) {
		if (c >= '0' && c <= '9')
			c -= '0';
		else if (c >= 'a' && c <= 'f')
			c -= 'a' - 10;
		else
			return false;
		*v = *v << 4 | (uint64_t)c;
	}
	return true;
}

/* Reads a line "start-end ...". */
static bool next_mapping(struct maps *m, uint64_t *start, uint64_t *end)
{
	int c;

	if (!read_hex(m, '-', start) || !read_hex(m, ' ', end))
		return false;
	do
		c = next_char(m);
	while (c >= 0 && c != '\n');
	return true;
}

/* Calls fn with each piece of memory that belongs to the program. False: /proc/self/maps can't be
 * read. */
static bool each_of_program(void (*fn)(uint64_t start, uint64_t size, void *arg), void *arg)
{
	struct maps m = { .at = 0 };
	uint64_t start, end, piece_end;
	bool any = false;

	m.fd = (int)pb_sys(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
	if (m.fd < 0)
		return false;
	while (next_mapping(&m, &start, &end)) {
		if (start >= USER_END)
			continue;
		for (; pb_pages_foreign(&start, end, &piece_end); start = piece_end)
			fn(start, piece_end - start, arg);
		any = true;
	}
	pb_sys(SYS_close, m.fd);
	return any;
}

static void add_size(uint64_t start, uint64_t size, void *sum)
{
	*(uint64_t *)sum += size;
}

/* Locks one piece of memory. Like mlockall(), it ignores mappings that can't be locked, and pages
 * that can't be faulted in. */
static void lock_piece(uint64_t start, uint64_t size, void *on_fault)
{
	if (on_fault)
		pb_sys(SYS_mlock2, start, size, MLOCK_ONFAULT);
	else
		pb_sys(SYS_mlock, start, size);
}

static void unlock_agent(void)
{
	uint64_t at, size;

	for (uint32_t i = 0; pb_pages_get(i, &at, &size); i++)
		if (size)
			pb_sys(SYS_munlock, at, size);
}

static bool within_limit(uint64_t size)
{
	struct { uint64_t soft, hard; } limit = { 0 };

	pb_sys(SYS_prlimit64, 0, RLIMIT_MEMLOCK, NULL, &limit);
	return size <= (limit.soft & ~4095ul);
}

/* Locks all mappings, but faults no page in. If `flags` has MCL_FUTURE without MCL_ONFAULT, a
 * second call ends MCL_ONFAULT for the mappings that the program makes later. */
static int lock_all_on_fault(int flags)
{
	int ret = original_mlockall(flags | MCL_ONFAULT);

	if (!ret && (flags & (MCL_FUTURE | MCL_ONFAULT)) == MCL_FUTURE)
		pb_sys(SYS_mlockall, MCL_FUTURE);
	return ret;
}

/* Returns 0, or -1 with errno set. */
static int lock_current(int flags)
{
	bool had_future = pb_pages_future;
	uint64_t size = 0;

	if (!pb_calls_are_safe())
		return lock_all_on_fault(flags);
	pb_pages_future = had_future || flags & MCL_FUTURE;
	if (!each_of_program(add_size, &size) || !within_limit(size)) {
		int ret = lock_all_on_fault(flags);

		if (ret) {
			pb_pages_future = had_future;
			return ret;
		}
		unlock_agent();
	} else if (flags & MCL_FUTURE) {
		pb_sys(SYS_mlockall, flags & ~MCL_CURRENT);
	} else if (had_future) {
		pb_sys(SYS_munlockall);
	}
	each_of_program(lock_piece, flags & MCL_ONFAULT ? &size : NULL);
	pb_pages_future = flags & MCL_FUTURE;
	return 0;
}

static int our_mlockall(int flags)
{
	int ret;

	if (flags & ~ALL_FLAGS)
		return original_mlockall(flags);
	if (flags & MCL_CURRENT)
		return lock_current(flags);
	ret = original_mlockall(flags);
	if (!ret)
		pb_pages_future = true;
	return ret;
}

void pb_memlock_hook(struct pb_module *m)
{
	if (!original_mlockall)
		pb_replace(m, "mlockall", our_mlockall, &original_mlockall);
}
