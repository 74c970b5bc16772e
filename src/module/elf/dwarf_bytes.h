/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Decodes DWARF's numbers and pointers from untrusted bytes.
 * Source of the formats: LSB 5.0 "Exception Frames", DWARF 5 section 7.6.
 *
 * Context: any thread; no state.
 */
#ifndef PB_MODULE_DWARF_BYTES_H
#define PB_MODULE_DWARF_BYTES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PE_ABSPTR	0x00
#define PE_ULEB128	0x01
#define PE_UDATA2	0x02
#define PE_UDATA4	0x03
#define PE_UDATA8	0x04
#define PE_SDATA2	0x0a
#define PE_SDATA4	0x0b
#define PE_SDATA8	0x0c
#define PE_PCREL	0x10
#define PE_OMIT		0xff

/* A cursor over bytes. A read past the end sets `dry` and returns 0. */
struct bytes {
	const uint8_t *p, *end;
	bool dry;
};

static inline uint64_t fixed(struct bytes *b, unsigned n)
{
	uint64_t v = 0;

	if ((size_t)(b->end - b->p) < n) {
		b->dry = true;
		b->p = b->end;
		return 0;
	}
	memcpy(&v, b->p, n);
	b->p += n;
	return v;
}

static inline uint64_t uleb(struct bytes *b)
{
	uint64_t v = 0;

	for (unsigned shift = 0; b->p < b->end; shift += 7) {
		uint8_t byte = *b->p++;

		if (shift < 64)
			v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return v;
	}
	b->dry = true;
	return 0;
}

static inline int64_t sleb(struct bytes *b)
{
	uint64_t v = 0;

	for (unsigned shift = 0; b->p < b->end;) {
		uint8_t byte = *b->p++;

		if (shift < 64)
			v |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
		if (!(byte & 0x80)) {
			if (byte & 0x40 && shift < 64)
				v |= ~0ull << shift;
			return (int64_t)v;
		}
	}
	b->dry = true;
	return 0;
}

/* Reads a pointer. vaddr is the address in memory of the byte b->p. The value 0 stays 0, even if
 * the encoding is relative. */
static inline uint64_t encoded(struct bytes *b, uint8_t encoding, uint64_t vaddr)
{
	uint64_t v;

	switch (encoding & 0x0f) {
	case PE_ABSPTR: case PE_UDATA8: case PE_SDATA8:
		v = fixed(b, 8);
		break;
	case PE_UDATA4:
		v = fixed(b, 4);
		break;
	case PE_SDATA4:
		v = (uint64_t)(int64_t)(int32_t)fixed(b, 4);
		break;
	case PE_UDATA2:
		v = fixed(b, 2);
		break;
	case PE_ULEB128:
		v = uleb(b);
		break;
	case PE_SDATA2:
		v = (uint64_t)(int64_t)(int16_t)fixed(b, 2);
		break;
	default:
		b->dry = true;
		return 0;
	}
	switch (encoding & 0x70) {
	case 0:
		return v;
	case PE_PCREL:
		return v ? v + vaddr : 0;
	default:
		b->dry = true;
		return 0;
	}
}

static inline void skip_encoded(struct bytes *b, uint8_t encoding)
{
	static const uint8_t width[16] = { 8, 0, 2, 4, 8, 0, 0, 0, 8, 0, 2, 4, 8 };

	if (encoding == PE_OMIT)
		return;
	if (!width[encoding & 0x0f])
		b->dry = true;
	fixed(b, width[encoding & 0x0f]);
}
#endif
