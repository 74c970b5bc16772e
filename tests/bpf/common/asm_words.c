/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads the words of an assembler's source: fixed texts, registers and numbers. A function whose
 * name begins with asm_take reads a word only if the source continues with it. If the word is
 * missing, asm_expect(), asm_reg(), asm_imm32() and asm_offset() report an error. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "asm_words.h"

bool asm_fail(struct as *a, const char *format, ...)
{
	va_list ap;
	int n;

	if (a->failed)
		return false;
	a->failed = true;
	n = snprintf(a->out->error, sizeof(a->out->error), "line %d: ", a->line);
	va_start(ap, format);
	vsnprintf(a->out->error + n, sizeof(a->out->error) - (size_t)n, format, ap);
	va_end(ap);
	return false;
}

void asm_blanks(struct as *a)
{
	while (*a->p == ' ' || *a->p == '\t')
		a->p++;
}

bool asm_take(struct as *a, const char *text)
{
	size_t n = strlen(text);

	asm_blanks(a);
	if (strncmp(a->p, text, n))
		return false;
	if (isalnum((unsigned char)text[n - 1]) &&
	    (isalnum((unsigned char)a->p[n]) || a->p[n] == '_'))
		return false;
	a->p += n;
	return true;
}

bool asm_expect(struct as *a, const char *text)
{
	return asm_take(a, text) || asm_fail(a, "\"%s\" expected at \"%s\"", text, a->p);
}

bool asm_take_reg(struct as *a, char letter, uint8_t *reg, char *was)
{
	unsigned n = 0;
	const char *p;

	asm_blanks(a);
	p = a->p;
	if (letter ? *p != letter : *p != 'r' && *p != 'w')
		return false;
	if (!isdigit((unsigned char)p[1]))
		return false;
	for (p++; isdigit((unsigned char)*p); p++)
		n = n * 10 + (unsigned)(*p - '0');
	if (n > 15 || isalnum((unsigned char)*p) || *p == '_')
		return false;
	if (was)
		*was = *a->p;
	*reg = (uint8_t)n;
	a->p = p;
	return true;
}

bool asm_reg(struct as *a, char letter, uint8_t *r)
{
	return asm_take_reg(a, letter, r, NULL) ||
	       asm_fail(a, "a register expected at \"%s\"", a->p);
}

bool asm_take_number(struct as *a, uint64_t *v)
{
	bool minus = false;
	const char *p;
	char *end;

	asm_blanks(a);
	p = a->p;
	if (*p == '+' || *p == '-')
		minus = *p++ == '-';
	if (!isdigit((unsigned char)*p))
		return false;
	*v = strtoull(p, &end, 0);
	if (minus)
		*v = -*v;
	a->p = end;
	return true;
}

bool asm_imm32(struct as *a, __s32 *imm)
{
	uint64_t v;

	if (!asm_take_number(a, &v))
		return asm_fail(a, "a number expected at \"%s\"", a->p);
	if ((int64_t)v < INT32_MIN || (int64_t)v > UINT32_MAX)
		return asm_fail(a, "the number has more than 32 bits");
	*imm = (__s32)(uint32_t)v;
	return true;
}

bool asm_offset(struct as *a, __s16 *off)
{
	uint64_t v;

	if (!asm_take_number(a, &v) || (int64_t)v != (int16_t)v)
		return asm_fail(a, "an offset of 16 bits expected at \"%s\"", a->p);
	*off = (__s16)v;
	return true;
}
