/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tests the cleaning of text for terminals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/clean_text.h"

static void cleaned(void **state)
{
	static const struct { const char *text, *want; char keep; } cases[] = {
		{ "", "", 0 }, { "plain", "plain", 0 }, { "a\033[1mb", "a?[1mb", 0 },
		{ "\x7f\x01\t", "???", 0 }, { "a\nb\r", "a\nb?", '\n' },
		/* U+009B begins a control sequence. U+00A0 and U+011B don't. */
		{ "a\xc2\x9b" "1m", "a??1m", 0 }, { "\xc2\x80\xc2\x9f", "????", 0 },
		{ "\xc2\xa0\xc4\x9b\xc3\x9b", "\xc2\xa0\xc4\x9b\xc3\x9b", 0 },
		/* bytes that are cut off or not UTF-8: a terminal that reads UTF-8 doesn't take
		 * them for a control character */
		{ "\xc2", "\xc2", 0 }, { "\x9b" "1m", "\x9b" "1m", 0 },
		{ "\xc2\xc2\x9b", "\xc2??", 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char buf[32];

		strcpy(buf, cases[i].text);
		pb_text_clean(buf, '?', cases[i].keep);
		assert_string_equal(buf, cases[i].want);
		assert_int_equal(pb_text_printable(cases[i].text),
				 !cases[i].keep && !strcmp(cases[i].text, cases[i].want));
	}
	pb_text_clean(NULL, '?', 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(cleaned) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
