/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Text for people, made without libc: the verifier's log and disassembly are
 * written in the process that runs the program, too.
 *
 * %s %c %d %u %x, with l or ll before the letter of a number, 0 and a width
 * before that, + for a sign and # for 0x; %%. Nothing else.
 */
#ifndef PB_BPF_CORE_TEXTBUF_H
#define PB_BPF_CORE_TEXTBUF_H
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

struct pb_bpf_text {
	char *buf;		/* size bytes, always ends in a 0; NULL: nothing is kept */
	uint32_t size, len;	/* len < size */
	bool cut;		/* something found no room */
	bool tail;		/* if it is full, the oldest lines go: at least half of it stays */
	uint64_t gone;		/* bytes that went */
};

/* Where the text ends, those that went included. */
static inline uint64_t pb_bpf_text_at(const struct pb_bpf_text *t)
{
	return t->gone + t->len;
}

/* Back to where it ended once. */
void pb_bpf_text_back(struct pb_bpf_text *t, uint64_t at);

void pb_bpf_vprintf(struct pb_bpf_text *t, const char *format, va_list ap);
void pb_bpf_printf(struct pb_bpf_text *t, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
#endif
