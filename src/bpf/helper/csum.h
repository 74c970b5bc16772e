/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The internet checksum (RFC 1071). Partial sums have 32 bits, the folded checksum has 16 bits, as
 * in the kernel. Context: any. */
#ifndef PB_BPF_HELPER_CSUM_H
#define PB_BPF_HELPER_CSUM_H
#include <stddef.h>
#include <stdint.h>

/* a + b with end-around carry. */
static inline uint32_t pb_csum_add(uint32_t a, uint32_t b)
{
	uint32_t sum = a + b;

	return sum + (sum < a);
}

static inline uint32_t pb_csum_sub(uint32_t a, uint32_t b)
{
	return pb_csum_add(a, ~b);
}

/* The same for sums of 16 bits. */
static inline uint16_t pb_csum16_add(uint16_t a, uint16_t b)
{
	uint16_t sum = (uint16_t)(a + b);

	return (uint16_t)(sum + (sum < a));
}

static inline uint16_t pb_csum_fold(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

/* Adds the sum of len bytes to `sum`. */
static inline uint32_t pb_csum_partial(const void *data, uint32_t len, uint32_t sum)
{
	const uint8_t *p = data;
	uint64_t total = sum;
	uint32_t word;

	for (; len >= 4; len -= 4, p += 4) {
		__builtin_memcpy(&word, p, 4);
		total += word;
	}
	word = 0;
	for (uint32_t i = 0; i < len; i++)
		word |= (uint32_t)p[i] << 8 * i;
	total += word;
	total = (total & 0xffffffff) + (total >> 32);
	return (uint32_t)((total & 0xffffffff) + (total >> 32));
}

/* Returns the amount that some bytes of a packet add to the packet's sum. offset: the offset of
 * these bytes in the packet. sum: the sum of these bytes alone. If the offset is odd, the amount is
 * `sum` rotated by a byte. */
static inline uint32_t pb_csum_shift(uint32_t sum, size_t offset)
{
	return offset & 1 ? sum >> 8 | sum << 24 : sum;
}
#endif
