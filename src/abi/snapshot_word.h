/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Splits "FUNC>TIME", a word of --snapshot-on and of the control file snapshot_on. Context: any.
 *
 * A function's name, or a pattern of names, may contain a '>', too: "operator>", "sum<int>",
 * "*int>". The first '>' can't belong to a name if only letters, digits and the characters _.$:~
 * are before it, and these don't end with "operator". Such a '>' begins the time. So the time of
 * "parse>" is "", which is an error. Otherwise the last '>' that is followed by a digit begins the
 * time.
 */
#ifndef PB_ABI_SNAPSHOT_WORD_H
#define PB_ABI_SNAPSHOT_WORD_H
#include <stdbool.h>
#include <stddef.h>

static inline bool pb_snapshot_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '.' || c == '$' || c == ':' || c == '~';
}

/* Returns the '>' that begins the time, or NULL. */
static inline char *pb_snapshot_time(char *word)
{
	static const char operator_[] = "operator";
	char *time = NULL, *end = word;
	size_t same = 0;

	while (pb_snapshot_plain(*end))
		end++;
	while (same < sizeof(operator_) - 1 && same < (size_t)(end - word) &&
	       end[-1 - (ptrdiff_t)same] == operator_[sizeof(operator_) - 2 - same])
		same++;
	if (*end == '>' && same < sizeof(operator_) - 1)
		return end;
	for (char *p = end; *p; p++)
		if (*p == '>' && p[1] >= '0' && p[1] <= '9')
			time = p;
	return time;
}
#endif
