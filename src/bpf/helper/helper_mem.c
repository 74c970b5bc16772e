/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Helpers that read or write memory that might be unmapped, and helpers for strings. */
#include "bpf/core/format.h"
#include "bpf/helper/helper_priv.h"

/* r1 buffer, r2 its size, r3 address. User and kernel memory aren't distinguished. */
static uint64_t probe(uint64_t to, uint64_t n, uint64_t from, struct pb_bpf_run *run)
{
	uint32_t size = (uint32_t)n;

	if (size && run->host->read(run, PB_BPF_PTR(to), from, size)) {
		memset(PB_BPF_PTR(to), 0, size);
		return PB_BPF_ERR(EFAULT);
	}
	return 0;
}

static uint64_t probe_str(uint64_t to, uint64_t n, uint64_t from, struct pb_bpf_run *run)
{
	uint32_t size = (uint32_t)n;
	int64_t len;

	if (!size)
		return 0;
	len = run->host->read_str(run, PB_BPF_PTR(to), from, size);
	if (len < 0)
		memset(PB_BPF_PTR(to), 0, size);
	return (uint64_t)len;
}

PB_BPF_HELPER(probe_read)
{
	return probe(r1, r2, r3, run);
}

PB_BPF_HELPER(probe_read_user)
{
	return probe(r1, r2, r3, run);
}

PB_BPF_HELPER(probe_read_kernel)
{
	return probe(r1, r2, r3, run);
}

PB_BPF_HELPER(probe_read_str)
{
	return probe_str(r1, r2, r3, run);
}

PB_BPF_HELPER(probe_read_user_str)
{
	return probe_str(r1, r2, r3, run);
}

PB_BPF_HELPER(probe_read_kernel_str)
{
	return probe_str(r1, r2, r3, run);
}

/* r1 address, r2 data, r3 its size */
PB_BPF_HELPER(probe_write_user)
{
	if (!run->host->write)
		return PB_BPF_ERR(EPERM);
	return (uint64_t)(int64_t)run->host->write(run, r1, PB_BPF_PTR(r2), (uint32_t)r3);
}

/* r1 string, perhaps without a 0, r2 its size, r3 string with a 0 */
PB_BPF_HELPER(strncmp)
{
	const uint8_t *a = PB_BPF_PTR(r1), *b = PB_BPF_PTR(r3);

	for (uint32_t n = (uint32_t)r2; n--; a++, b++) {
		if (*a != *b)
			return (uint64_t)(*a < *b ? -1 : 1);
		if (!*a)
			break;
	}
	return 0;
}

#define DIGITS	63		/* strtol and strtoul read at most this many characters of a
				 * number */

static int digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' &&
	       (c | 32) <= 'z' ? (c | 32) - 'a' + 10 : 99;
}

struct number {
	const char *at, *end;
	uint64_t value;
	bool minus;
};

static char look(const struct number *n, int i)
{
	return n->end - n->at > i ? n->at[i] : 0;
}

/* If base is 0, the number's prefix selects the base: "0x" selects 16, "0" selects 8, and no prefix
 * selects 10. If base is 16, the number may have the prefix "0x". */
static uint32_t read_base(struct number *n, uint32_t base)
{
	bool hex = look(n, 0) == '0' && (look(n, 1) | 32) == 'x';

	if (!base)
		base = hex && digit(look(n, 2)) < 16 ? 16 : look(n, 0) == '0' ? 8 : 10;
	if (base == 16 && hex)
		n->at += 2;
	return base;
}

static int read_digits(struct number *n, uint32_t base)
{
	const char *first = n->at;
	bool over = false;

	for (; n->at < n->end && digit(*n->at) < (int)base; n->at++) {
		over |= __builtin_mul_overflow(n->value, base, &n->value);
		over |= __builtin_add_overflow(n->value, (uint64_t)digit(*n->at), &n->value);
	}
	return over ? -ERANGE : n->at == first ? -EINVAL : 0;
}

/* Returns the number of characters read, or -errno. */
static int64_t parse(const char *text, uint64_t len, uint64_t flags, struct number *n)
{
	int err;

	*n = (struct number){ .at = text, .end = text + len };
	if (flags != 0 && flags != 8 && flags != 10 && flags != 16)
		return -EINVAL;
	while (n->at < n->end && (*n->at == ' ' || (*n->at >= '\t' && *n->at <= '\r') ||
				  (uint8_t)*n->at == 0xa0))
		n->at++;
	n->minus = look(n, 0) == '-';
	n->at += n->minus;
	if (n->at == n->end)
		return -EINVAL;
	if (n->end - n->at > DIGITS)
		n->end = n->at + DIGITS;
	err = read_digits(n, read_base(n, (uint32_t)flags));
	return err ? err : n->at - text;
}

/* r1 text, r2 its size, r3 base, r4 result */
PB_BPF_HELPER(strtol)
{
	int64_t *result = PB_BPF_PTR(r4), used;
	struct number n;

	*result = 0;
	used = parse(PB_BPF_PTR(r1), r2, r3, &n);
	if (used < 0)
		return (uint64_t)used;
	if (n.value > (uint64_t)INT64_MAX + n.minus)
		return PB_BPF_ERR(ERANGE);
	*result = (int64_t)(n.minus ? -n.value : n.value);
	return (uint64_t)used;
}

PB_BPF_HELPER(strtoul)
{
	uint64_t *result = PB_BPF_PTR(r4);
	struct number n;
	int64_t used;

	*result = 0;
	used = parse(PB_BPF_PTR(r1), r2, r3, &n);
	if (used < 0)
		return (uint64_t)used;
	if (n.minus)
		return PB_BPF_ERR(EINVAL);
	*result = n.value;
	return (uint64_t)used;
}

static uint64_t trace(struct pb_bpf_run *run, const char *format, uint32_t size,
		      const uint64_t *args, uint32_t nr)
{
	char line[PB_BPF_FORMAT_BUF];
	int64_t len = pb_bpf_format(run, line, sizeof(line), format, size, args, nr);

	if (len >= 0 && run->host->trace)
		run->host->trace(run, line, len < (int64_t)sizeof(line) ? (uint32_t)len :
				 sizeof(line) - 1);
	return (uint64_t)len;
}

/* r1 format, r2 its size, r3 ... r5 arguments */
PB_BPF_HELPER(trace_printk)
{
	return trace(run, PB_BPF_PTR(r1), (uint32_t)r2, (const uint64_t[]){ r3, r4, r5 }, 3);
}

static bool are_args(uint64_t args, uint32_t bytes)
{
	return !(bytes % 8) && bytes <= PB_BPF_FORMAT_ARGS * 8 && (!bytes || args);
}

/* r1 format, r2 its size, r3 arguments, r4 their size */
PB_BPF_HELPER(trace_vprintk)
{
	uint32_t bytes = (uint32_t)r4;

	if (!are_args(r3, bytes))
		return PB_BPF_ERR(EINVAL);
	return trace(run, PB_BPF_PTR(r1), (uint32_t)r2, PB_BPF_PTR(r3), bytes / 8);
}

/* r1 buffer, r2 its size, r3 format, r4 arguments, r5 their size */
PB_BPF_HELPER(snprintf)
{
	uint32_t bytes = (uint32_t)r5;
	int64_t len;

	/* the verifier, as the kernel's, accepts NULL with a size that isn't 0 */
	if (!are_args(r4, bytes) || (!r1 && (uint32_t)r2))
		return PB_BPF_ERR(EINVAL);
	len = pb_bpf_format(run, PB_BPF_PTR(r1), (uint32_t)r2, PB_BPF_PTR(r3), ~0u, PB_BPF_PTR(r4),
			    bytes / 8);
	return (uint64_t)(len < 0 ? len : len + 1);
}
