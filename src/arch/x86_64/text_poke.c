/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writes patches into program text. Writing 50,000 sites one by one takes a hundred milliseconds.
 * Writing whole pages takes less than ten. So pages are copied into a buffer, changed in the
 * buffer, and written back.
 */
#include <asm/errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include "arch/arch.h"
#include "base/mem.h"
#include "base/sys.h"

#define PAGE		4096ul
#define BUFFER		(64ul << 10)

/* Only the holder of the text's lock, or its helper, writes patches. The buffer isn't allocated for
 * each call: page faults would make a stop longer. */
static uint8_t buffer[BUFFER] __attribute__((aligned(PAGE)));

static int open_memory(void)
{
	return (int)pb_sys(SYS_openat, AT_FDCWD, "/proc/self/mem", O_RDWR | O_CLOEXEC, 0);
}

static uint64_t page_of(uint64_t a)
{
	return a & ~(PAGE - 1);
}

/* Whether the program may write to the page. Text is readable and executable. The kernel copies a
 * byte of the page onto itself, and fails if the page isn't writable. */
static bool is_writable(uint64_t page)
{
	struct { uint64_t at, size; } byte = { page, 1 };

	return pb_sys(SYS_process_vm_readv, pb_sys(SYS_getpid), &byte, 1, &byte, 1, 0) == 1;
}

/* Pages of text, while they may be written. Bit i is set if the program may write to page i. */
struct pages {
	uint64_t start, end, writable;
};
#define MOST_PAGES	64

/* Changes the protection of the pages that the program may not write to. */
static int protect(const struct pages *p, int prot)
{
	long err = 0;

	for (uint64_t at = p->start, next; at < p->end && !err; at = next) {
		uint64_t bit = (at - p->start) / PAGE;

		next = at + PAGE;
		if (bit < MOST_PAGES && p->writable >> bit & 1)
			continue;
		for (bit++; next < p->end && !(bit < MOST_PAGES && p->writable >> bit & 1); bit++)
			next += PAGE;
		err = pb_sys(SYS_mprotect, at, next - at, prot);
	}
	return (int)err;
}

/* open_pages() makes pages of text writable if /proc/self/mem can't be written. close_pages()
 * restores their protection. */
static int open_pages(struct pages *p, uint64_t start, uint64_t end)
{
	int err;

	*p = (struct pages){ start, end, 0 };
	for (uint64_t at = start; at < end && at - start < MOST_PAGES * PAGE; at += PAGE)
		p->writable |= (uint64_t)is_writable(at) << (at - start) / PAGE;
	err = protect(p, PROT_READ | PROT_WRITE | PROT_EXEC);
	if (err)
		protect(p, PROT_READ | PROT_EXEC);
	return err;
}

static int close_pages(const struct pages *p)
{
	return protect(p, PROT_READ | PROT_EXEC);
}

int pb_text_write(uint64_t addr, const void *bytes, size_t len)
{
	int fd = open_memory();
	long n = fd < 0 ? fd : pb_sys(SYS_pwrite64, fd, bytes, len, addr);
	struct pages pages;
	int err;

	if (fd >= 0)
		pb_sys(SYS_close, fd);
	if (n == (long)len)
		return 0;
	err = open_pages(&pages, page_of(addr), page_of(addr + len - 1) + PAGE);
	if (err)
		return err;
	memcpy((void *)addr, bytes, len);
	return close_pages(&pages);
}

/* Returns how many patches fit into one write that starts with p[0]. *start and *end get the bounds
 * of the pages that this write covers. */
static size_t run_length(const struct pb_patch *p, size_t nr, uint64_t *start, uint64_t *end)
{
	size_t i;

	*start = page_of(p[0].addr);
	*end = page_of(p[0].addr + p[0].len - 1) + PAGE;
	for (i = 1; i < nr; i++) {
		uint64_t last = page_of(p[i].addr + p[i].len - 1) + PAGE;

		if (page_of(p[i].addr) > *end || last - *start > BUFFER)
			break;
		if (last > *end)
			*end = last;
	}
	return i;
}

static int write_run(const struct pb_patch *p, size_t nr, uint64_t start, uint64_t end, int fd)
{
	memcpy(buffer, (const void *)start, end - start);
	for (size_t i = 0; i < nr; i++)
		memcpy(buffer + (p[i].addr - start), p[i].bytes, p[i].len);
	for (uint64_t done = 0; done < end - start;) {
		long n = pb_sys(SYS_pwrite64, fd, buffer + done, end - start - done, start + done);

		if (n <= 0)
			return n ? (int)n : -EIO;
		done += (uint64_t)n;
	}
	return 0;
}

static int protect_run(const struct pb_patch *p, size_t nr, uint64_t start, uint64_t end)
{
	struct pages pages;
	int err = open_pages(&pages, start, end);

	if (err)
		return err;
	for (size_t i = 0; i < nr; i++)
		memcpy((void *)p[i].addr, p[i].bytes, p[i].len);
	return close_pages(&pages);
}

/* Writes a byte of text as it is. So the process has a copy of the byte's page, and the page is
 * mapped. *last: the page that was prepared last. */
static void prepare_page(int fd, uint64_t addr, uint64_t *last)
{
	const volatile uint8_t *at = (const volatile uint8_t *)addr;
	uint8_t byte;

	if (page_of(addr) == *last)
		return;
	*last = page_of(addr);
	byte = *at;
	pb_sys(SYS_pwrite64, fd, &byte, 1, at);
	byte = *at;
}

void pb_text_prepare(const struct pb_patch *p, size_t nr)
{
	int fd = nr ? open_memory() : -1;
	uint64_t last = 0;

	if (fd < 0)
		return;
	memset(buffer, 0, sizeof(buffer));
	for (size_t i = 0; i < nr; i++) {
		prepare_page(fd, p[i].addr, &last);
		prepare_page(fd, p[i].addr + p[i].len - 1u, &last);
	}
	pb_sys(SYS_close, fd);
}

int pb_text_poke(const struct pb_patch *p, size_t nr)
{
	int fd = open_memory(), err = 0;

	while (nr && !err) {
		uint64_t start, end;
		size_t n = run_length(p, nr, &start, &end);

		err = fd < 0 ? fd : write_run(p, n, start, end, fd);
		if (err)
			err = protect_run(p, n, start, end);
		p += n;
		nr -= n;
	}
	if (fd >= 0)
		pb_sys(SYS_close, fd);
	return err;
}
