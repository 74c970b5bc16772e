/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `--global NAME=VALUE`: sets variables of an object, mostly constants. */
#include <errno.h>
#include <string.h>

#include "cli/bpf/bpf_common.h"

#define LONGEST	128	/* limit on a name's length, in bytes */

int bpf_globals_add(struct bpf_session *s, const char *text)
{
	const char *value = strchr(text, '=');

	if (!value || value == text || value - text >= LONGEST) {
		pb_error(s->command, "--global %s: say NAME=VALUE", text);
		return -EINVAL;
	}
	if (s->nr_globals == BPF_MAX_GLOBALS) {
		pb_error(s->command, "--global %s: no more than %d variables", text,
			 BPF_MAX_GLOBALS);
		return -EINVAL;
	}
	s->globals[s->nr_globals++] = text;
	return 0;
}

int bpf_globals_set(const struct bpf_session *s, const char *path)
{
	char name[LONGEST];
	int err = 0;

	for (uint32_t i = 0; i < s->nr_globals && !err; i++) {
		const char *value = strchr(s->globals[i], '=');

		snprintf(name, sizeof(name), "%.*s", (int)(value - s->globals[i]), s->globals[i]);
		err = pb_bpf_object_set(s->object, name, value + 1);
		if (err == -ENOENT)
			pb_error(s->command, "--global %s: %s has no such variable", s->globals[i],
				 path);
		else if (err == -ERANGE)
			pb_error(s->command, "--global %s: the variable has no room for that",
				 s->globals[i]);
		else if (err == -EINVAL)
			pb_error(s->command, "--global %s: give a number, true or false, or a text "
					     "for an array of characters; other variables can't be "
					     "set", s->globals[i]);
		else if (err)
			pb_error(s->command, "--global %s: %s", s->globals[i], strerror(-err));
	}
	return err;
}
