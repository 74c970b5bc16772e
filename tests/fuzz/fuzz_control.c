/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Fuzzes the parsers of src/control with any bytes. They must end, and must not read outside their
 * input. If a duration is parsed and then formatted, the text must parse to the same duration.
 * If writes to control files are packed into one buffer, the buffer must unpack, and the unpacked
 * writes must pack to the same bytes again. The result of each glob is compared with the result of
 * a second, slow matcher.
 */
#include <stdlib.h>
#include <string.h>

#include "base/glob.h"
#include "control/control.h"
#include "control/resolve.h"
#include "driver.h"

static int add_again(void *arg, const char *path, bool append, const char *value)
{
	enum pb_control_file f = pb_control_find(path);

	if (f != PB_NR_CONTROL_FILES)
		pb_control_writes_add(arg, f, value);
	return 0;
}

static void patterns(const char *text)
{
	struct pb_control_pattern pat;
	const char *p = text, *end = text + strlen(text);
	char err[200];
	int ret;

	*err = 0;
	while ((ret = pb_control_pattern_next(&p, &pat, err, sizeof(err))) > 0) {
		FUZZ_CHECK(p > text && p <= end);
		FUZZ_CHECK(pat.text >= text && pat.text + pat.text_len <= end);
		FUZZ_CHECK(pat.text_len || pat.module);
		FUZZ_CHECK(!pat.module || (pat.module + pat.module_len <= end && pat.module_len));
	}
	FUZZ_CHECK(ret == 0 || *err);
}

static void numbers(const char *text)
{
	char buf[40];
	uint64_t n, again;

	if (!pb_control_parse_u64(text, 1000, &n))
		FUZZ_CHECK(n <= 1000);
	if (!pb_control_parse_duration(text, &n)) {
		pb_control_format_us(n, buf, sizeof(buf));
		FUZZ_CHECK(!pb_control_parse_duration(buf, &again));
		FUZZ_CHECK(again == n);
	}
}

/* --- globs -------------------------------------------------------------- */

/* Returns whether c is in a character class. At the call, *p is right after the class's '['. Moves
 * *p past the class's ']'. If there is no ']', sets *is_class to false, returns false, and doesn't
 * change *p. */
static bool in_class(const char **p, char c, bool *is_class)
{
	const char *start = *p + (**p == '!'), *end = *start ? strchr(start + 1, ']') : NULL;
	bool in = false;

	/* "[+--]" has a range, '+' to '-'. "[a-]]" has no range: it is the class "[a-]" and a
	 * ']' */
	for (const char *q = start; end && q < end; q++) {
		unsigned char from = (unsigned char)*q, to = from;

		if (q[1] == '-' && q[2] && q[2] != ']') {
			to = (unsigned char)q[2];
			q += 2;
		}
		in |= from <= (unsigned char)c && (unsigned char)c <= to;
	}
	*is_class = end;
	if (!end)
		return false;
	in ^= **p == '!';
	*p = end + 1;
	return in;
}

static bool slow_match(const char *p, const char *s, unsigned *steps)
{
	bool is_class, in;

	if (!*steps || !--*steps)
		return false;
	switch (*p) {
	case 0:
		return !*s;
	case '*':
		return slow_match(p + 1, s, steps) || (*s && slow_match(p, s + 1, steps));
	case '?':
		return *s && slow_match(p + 1, s + 1, steps);
	case '[':
		p++;
		in = in_class(&p, *s, &is_class);
		if (!is_class)
			in = *s == '[';
		return *s && in && slow_match(p, s + 1, steps);
	case '\\':
		p += p[1] != 0;
		/* fall through */
	default:
		return *p == *s && slow_match(p + 1, s + 1, steps);
	}
}

/* text: a pattern, a newline, and the string to match. */
static void globs(char *text)
{
	char *s = strchr(text, '\n');
	unsigned steps = 20000;
	bool slow;

	if (!s)
		return;
	*s = 0;
	slow = slow_match(text, s + 1, &steps);
	FUZZ_CHECK(!steps || pb_glob_match(text, s + 1) == slow);
	if (strlen(text) <= PB_EDIT_MAX && strlen(s + 1) <= PB_EDIT_MAX) {
		unsigned d = pb_edit_distance(text, s + 1, 5);

		FUZZ_CHECK(d <= 6 && d == pb_edit_distance(s + 1, text, 5));
		FUZZ_CHECK(!d == !strcmp(text, s + 1));
	}
	*s = '\n';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pb_control_writes w = { 0 }, again = { 0 };
	char *text = malloc(size + 1), err[200];

	memcpy(text, data, size);
	text[size] = 0;
	patterns(text);
	numbers(text);
	globs(text);
	for (unsigned i = 0; i < PB_NR_CONTROL_FILES; i++) {
		*err = 0;
		if (pb_control_validate((enum pb_control_file)i, text, size & 1, err, sizeof(err)))
			FUZZ_CHECK(*err);
	}
	pb_control_find(text);
	pb_control_writes_each((char *)data, size, size ? data[0] : 3, add_again, &w);
	/* the packed writes must unpack, and must pack to the same bytes again */
	FUZZ_CHECK(!w.nr || !pb_control_writes_each(w.buf, w.len, w.nr, add_again, &again));
	FUZZ_CHECK(w.nr == again.nr && w.len == again.len);
	FUZZ_CHECK(!w.len || !memcmp(w.buf, again.buf, w.len));
	pb_control_writes_free(&w);
	pb_control_writes_free(&again);
	free(text);
	return 0;
}

void fuzz_seeds(void)
{
#define S(text) { text, sizeof(text) - 1 }
	static const struct { const char *text; size_t len; } seeds[] = {
		S(""), S("main"), S("!main"), S("!"), S("a b\tc\n"), S("f*:mod:libc*"), S(":mod:x"),
		S("x:mod:"), S("a::b(int)"), S("x:traceon"), S("10us"), S("1.5ms"),
		S("18446744073709551615"), S("18446744073709551616s"), S(".5"), S("1."), S("0x10"),
		S("function_graph"), S("max_graph_depth\0>\0" "3\0"),
		S("set_ftrace_filter\0>>\0foo\0"),
		S("*a[b-dx]?\\*\nxxac.*"), S("[!a-c]*[]-]\nd-"), S("*ab*ab*[\nxabyab["),
	};

	for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++)
		fuzz_seed(seeds[i].text, seeds[i].len);
}
