/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copies of handlers. The loader maps a PIE program and the agent far from each other. On AMD's
 * Zen 4, a jump whose target is more than 64 GiB away costs a cycle or more. A traced call makes
 * three such jumps. Without copies, a call that a filter rejects costs 2 ns more. So each far
 * module has copies of the most frequent handlers, at the head of its stubs.
 *
 * A copy has the same instructions as the original, at the same offsets. The agent's tables of code
 * (hot.h, forked.h) describe only the originals. So if a signal interrupts a copy, the PC moves to
 * the same place in the original before the handler runs (pb_near_original()). After the handler,
 * the thread goes on there.
 *
 * Two kinds of instructions in the originals depend on their own address. Loads of the TLS word are
 * linked before the copies are made (hot_tls.c). Jumps to code that isn't copied become jumps to
 * absolute addresses in the copies. The agent's variables are out of reach of a copy: handlers read
 * them in the thread's state (engine/graph/thread_words.h).
 */
#include "arch/arch.h"
#include "arch/x86_64/hot.h"
#include "base/base.h"
#include "base/mem.h"

#define FAR		(1ul << 36)
#define ALIGN		64u
#define JMP_WORD_LEN	6

/* Goes over the ranges of code to copy. `at` is the offset of the range's copy in a head, that is,
 * in the first PB_STUBS_HEAD bytes of a module's stubs. */
#define each_range(r, at) \
	(const struct pb_near_range *r = (at = 0, __start_pb_near_ranges); \
	 r < __stop_pb_near_ranges; at = pb_align_up(at + r->length, ALIGN), r++)

/* In a copy, replaces the original's jump at `jump` by a jump to the absolute address. */
static void leave(uint8_t *copy, const uint8_t *jump)
{
	static const uint8_t jmp_word[JMP_WORD_LEN] = PB_JMP_WORD;
	uint64_t to = pb_offset_target((const int32_t *)(jump + 1)) + sizeof(int32_t);

	memcpy(copy, jmp_word, sizeof(jmp_word));
	memcpy(copy + sizeof(jmp_word), &to, sizeof(to));
}
_Static_assert(PB_NEAR_LEAVE_LEN == JMP_WORD_LEN + sizeof(uint64_t), "frame.h");

static void leaves_of(uint8_t *copy, uint64_t start, uint32_t length)
{
	for (const int32_t *l = __start_pb_near_leaves; l < __stop_pb_near_leaves; l++) {
		uint64_t jump = pb_offset_target(l);

		if (jump - start < length)
			leave(copy + (jump - start), (const uint8_t *)jump);
	}
}

bool pb_near_make(uint8_t *head)
{
	uint64_t hot = (uint64_t)__start_pb_hot, to = (uint64_t)head;
	uint32_t at;

	if (!pb_hot_linked || (to > hot ? to - hot : hot - to) < FAR)
		return false;
	for each_range(r, at)
		if (at + r->length > PB_STUBS_HEAD)
			return false;
	for each_range(r, at) {
		uint64_t start = pb_offset_target(&r->start);

		memcpy(head + at, (const void *)start, r->length);
		leaves_of(head + at, start, r->length);
	}
	return true;
}

uint64_t pb_near_of(const uint8_t *head, uint64_t handler)
{
	uint32_t at;

	for each_range(r, at)
		if (pb_offset_target(&r->start) == handler)
			return (uint64_t)head + at;
	return handler;
}

uint64_t pb_near_original(const uint8_t *head, uint64_t pc)
{
	uint64_t off = pc - (uint64_t)head;
	uint32_t at;

	if (off >= PB_STUBS_HEAD)
		return 0;
	for each_range(r, at)
		if (off - at < r->length)
			return pb_offset_target(&r->start) + (off - at);
	return 0;
}
