/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A shared object reads its TLS word with two loads, because the word's offset from the thread
 * pointer is known only after the object was loaded:
 *
 *     48 8b 0d DISP		mov pb_tls@gottpoff(%rip),%rcx
 *     64 48 8b 09		mov %fs:(%rcx),%rcx
 *
 * In an executable, one instruction that contains the offset is enough. A traced call usually reads
 * the word two or three times. So when the agent starts, it replaces each of these pairs of loads
 * on the hit path by that one instruction. Two prefixes 66, which have no effect, fill the
 * remaining bytes:
 *
 *     66 66 64 48 8b 0c 25 OFF	mov %fs:OFF,%rcx
 *
 * The agent changes a copy of the whole section pb_hot, and then writes this copy to the section's
 * address. So the process gets private copies of all pages of the section.
 */
#include <stddef.h>
#include <sys/mman.h>
#include "arch/arch.h"
#include "arch/x86_64/hot.h"
#include "base/base.h"
#include "base/mem.h"
#include "base/sys.h"

#define LOAD_LEN	11
#define PAGE		4096ul

/* Each element is an offset: the address of a pair of loads minus the element's own address. */
extern const int32_t __start_pb_hot_tls[] __attribute__((visibility("hidden")));
extern const int32_t __stop_pb_hot_tls[] __attribute__((visibility("hidden")));

PB_LASTING bool pb_hot_linked;

/* Rewrites `code`, which is a copy of the two loads at `at`. False: `code` is unchanged. */
static bool link_load(uint8_t *code, const uint8_t *at)
{
	uint8_t reg = code[2] >> 3 & 7;
	const uint8_t loads[] = { 0x64, 0x48, 0x8b, (uint8_t)(reg << 3 | reg) };
	const uint8_t linked[] = { 0x66, 0x66, 0x64, 0x48, 0x8b, (uint8_t)(reg << 3 | 4), 0x25 };
	int64_t offset;
	int32_t disp;

	if (code[0] != 0x48 || code[1] != 0x8b || (code[2] & 0xc7) != 5 ||
	    memcmp(code + 7, loads, sizeof(loads)))
		return false;
	memcpy(&disp, code + 3, sizeof(disp));
	memcpy(&offset, at + 7 + disp, sizeof(offset));
	disp = (int32_t)offset;
	if (disp != offset)
		return false;
	memcpy(code, linked, sizeof(linked));
	memcpy(code + sizeof(linked), &disp, sizeof(disp));
	return true;
}

static uint64_t page_of(uint64_t a)
{
	return a & ~(PAGE - 1);
}

void pb_hot_link_tls(void)
{
	size_t size = (size_t)(__stop_pb_hot - __start_pb_hot);
	const uint8_t *hot = (const uint8_t *)__start_pb_hot;
	uint64_t start = page_of((uint64_t)hot), end = page_of((uint64_t)hot + size - 1) + PAGE;
	bool all = true;
	long buf;

	if (pb_hot_linked)
		return;
	buf = pb_sys(SYS_mmap, 0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		     -1, 0);
	if (pb_sys_failed(buf))
		return;
	memcpy((void *)buf, hot, size);
	for (const int32_t *p = __start_pb_hot_tls; p < __stop_pb_hot_tls; p++) {
		const uint8_t *at = (const uint8_t *)p + *p;

		if ((size_t)(at - hot) > size - LOAD_LEN ||
		    !link_load((uint8_t *)buf + (at - hot), at))
			all = false;
	}
	/* If a page of a mapping has changed, a core file holds the whole mapping. So these pages
	 * first become a mapping of their own, which core files leave out. */
	pb_sys(SYS_madvise, start, end - start, MADV_DONTDUMP);
	pb_hot_linked = !pb_text_write((uint64_t)hot, (const void *)buf, size) && all;
	pb_sys(SYS_munmap, buf, size);
}
