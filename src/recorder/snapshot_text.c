/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Describes a snapshot in a few words. The text also has the number of chunks that are missing
 * because they changed while they were copied. */
#include <stdio.h>

#include "base/base.h"
#include "reader/kept_calls.h"
#include "reader/snapshot.h"
#include "recorder/snapshot_text.h"
#include "recorder/texts.h"

const char *record_snapshot_text(const struct pb_snapshot *s, const char *dir, char *buf,
				 size_t len)
{
	char calls[32] = "?", bytes[32];
	uint64_t kept = 0;
	int n;

	if (!pb_kept_calls(dir, &kept))
		record_format_number(kept, calls, sizeof(calls));
	record_format_bytes(s->bytes, bytes, sizeof(bytes));
	n = snprintf(buf, len, "%s call%s, %s", calls, pb_plural(kept), bytes);
	if (s->missed && n > 0 && (size_t)n < len)
		snprintf(buf + n, len - (size_t)n, ", %llu chunk%s changed meanwhile",
			 (unsigned long long)s->missed, pb_plural(s->missed));
	return buf;
}
