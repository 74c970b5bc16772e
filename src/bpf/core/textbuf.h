/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Formats text without libc: the agent, which must not call libc, also writes the verifier's log
 * and the disassembly.
 *
 * Conversions: %s %c %d %u %x %%. A number may have the flags 0, + (a sign) and # (0x), a width,
 * and l or ll. Unlike in printf, the width doesn't count the 0x. No other conversions or flags are
 * supported.
 */
#ifndef PB_BPF_CORE_TEXTBUF_H
#define PB_BPF_CORE_TEXTBUF_H
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

struct pb_bpf_text {
	char *buf;		/* `size` bytes, always terminated by 0; NULL: no text is kept */
	uint32_t size, len;	/* len < size */
	bool cut;		/* some text is missing, because there was no room */
	bool tail;		/* if the buffer is full, drop the oldest lines (about half of the
				 * text) in place of the newest */
	uint64_t gone;		/* bytes that were dropped */
};

/* Returns the position of the text's end. Dropped bytes count, too. */
static inline uint64_t pb_bpf_text_at(const struct pb_bpf_text *t)
{
	return t->gone + t->len;
}

/* Shortens the text to an earlier position. */
void pb_bpf_text_back(struct pb_bpf_text *t, uint64_t at);

void pb_bpf_vprintf(struct pb_bpf_text *t, const char *format, va_list ap);
void pb_bpf_printf(struct pb_bpf_text *t, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
#endif
