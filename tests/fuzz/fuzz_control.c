/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The parsers of src/control on any bytes: they end, stay inside what they were
 * given, and agree with each other. Built by libFuzzer (clang
 * -fsanitize=fuzzer,address) or, without it, run on files and a few thousand
 * made inputs as an ordinary test.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/control.h"

#define CHECK(x) do { if (!(x)) { fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x); abort(); } } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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

	while ((ret = pb_control_pattern_next(&p, &pat, err, sizeof(err))) > 0) {
		CHECK(p > text && p <= end);
		CHECK(pat.text >= text && pat.text + pat.text_len <= end);
		CHECK(pat.text_len || pat.module);
		CHECK(!pat.module || (pat.module + pat.module_len <= end && pat.module_len));
	}
	CHECK(ret == 0 || strlen(err));
}

static void numbers(const char *text)
{
	char buf[40];
	uint64_t n, again;

	if (!pb_control_parse_u64(text, 1000, &n))
		CHECK(n <= 1000);
	if (!pb_control_parse_duration(text, &n)) {
		pb_control_format_us(n, buf, sizeof(buf));
		CHECK(!pb_control_parse_duration(buf, &again));
		CHECK(again == n);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pb_control_writes w = { 0 }, again = { 0 };
	char *text = malloc(size + 1), err[200];

	memcpy(text, data, size);
	text[size] = 0;
	patterns(text);
	numbers(text);
	for (unsigned i = 0; i < PB_NR_CONTROL_FILES; i++) {
		*err = 0;
		if (pb_control_validate((enum pb_control_file)i, text, size & 1, err, sizeof(err)))
			CHECK(*err);
	}
	pb_control_find(text);
	pb_control_writes_each((char *)data, size, size ? data[0] : 3, add_again, &w);
	/* what was packed unpacks, and packs to the same */
	CHECK(!w.nr || !pb_control_writes_each(w.buf, w.len, w.nr, add_again, &again));
	CHECK(w.nr == again.nr && w.len == again.len);
	CHECK(!w.len || !memcmp(w.buf, again.buf, w.len));
	pb_control_writes_free(&w);
	pb_control_writes_free(&again);
	free(text);
	return 0;
}

#ifndef PB_LIBFUZZER
#define S(text) { text, sizeof(text) - 1 }
static const struct { const char *text; size_t len; } seeds[] = {
	S(""), S("main"), S("!main"), S("!"), S("a b\tc\n"), S("f*:mod:libc*"), S(":mod:x"), S("x:mod:"),
	S("a::b(int)"), S("x:traceon"), S("10us"), S("1.5ms"), S("18446744073709551615"),
	S("18446744073709551616s"), S(".5"), S("1."), S("0x10"), S("function_graph"),
	S("max_graph_depth\0>\0" "3\0"), S("set_ftrace_filter\0>>\0foo\0"),
};

int main(int argc, char **argv)
{
	uint64_t x = 88172645463325252u;
	uint8_t buf[64];

	for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++) {
		for (int n = 0; n < 2000; n++) {
			size_t len = seeds[i].len;

			memcpy(buf, seeds[i].text, len);
			for (int k = 0; k < n % 4; k++) {
				x ^= x << 13, x ^= x >> 7, x ^= x << 17;
				if (len < 60 && x & 64)
					buf[len++] = 0;
				if (len)
					buf[x % len] = (uint8_t)(x >> 16);
			}
			LLVMFuzzerTestOneInput(buf, len);
		}
	}
	return 0;
}
#endif
