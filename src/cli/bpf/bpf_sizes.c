/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `--map NAME:max_entries=N,...`: sizes of an object's maps, from the command line. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bpf/bpf_common.h"

#define SHOWN	12	/* limit on the count of maps that a message names */

bool bpf_is_size(const char *text)
{
	return strchr(text, ':');
}

/* Returns the entry for the map with this name. If there is none, adds an entry, whose name is
 * never freed. NULL: the list is full, or there is no memory. */
static struct pb_bpf_make_size *entry_of(struct bpf_sizes *sizes, const char *name, size_t len)
{
	for (uint32_t i = 0; i < sizes->nr; i++)
		if (!strncmp(sizes->list[i].map, name, len) && !sizes->list[i].map[len])
			return &sizes->list[i];
	if (sizes->nr == BPF_MAX_MAPS)
		return NULL;
	sizes->list[sizes->nr] = (struct pb_bpf_make_size){ .map = strndup(name, len) };
	return sizes->list[sizes->nr].map ? &sizes->list[sizes->nr++] : NULL;
}

static uint32_t *attribute_of(struct pb_bpf_make_size *s, const char *name, size_t len)
{
	if (len == 11 && !strncmp(name, "max_entries", len))
		return &s->max_entries;
	if (len == 10 && !strncmp(name, "value_size", len))
		return &s->value_size;
	return len == 8 && !strncmp(name, "key_size", len) ? &s->key_size : NULL;
}

/* Reads a number from 1 to UINT32_MAX. Returns 0 if the text is no such number. *end: the first
 * character after the number. */
static uint32_t number_of(const char *text, const char **end)
{
	unsigned long n;
	char *after;

	errno = 0;
	n = isdigit((unsigned char)*text) ? strtoul(text, &after, strncmp(text, "0x", 2) ? 10 :
						    16) : 0;
	*end = n ? after : text;
	return errno || n > UINT32_MAX ? 0 : (uint32_t)n;
}

int bpf_sizes_add(struct bpf_sizes *sizes, const char *command, const char *text)
{
	const char *p = strchr(text, ':'), *end = p;
	struct pb_bpf_make_size *s = p && p != text ? entry_of(sizes, text, (size_t)(p - text)) :
				     NULL;

	if (s == NULL) {
		pb_error(command, p && p != text ? "--map %s: no more than %d maps" :
			 "--map %s: say NAME:max_entries=N, or value_size, key_size", text,
			 BPF_MAX_MAPS);
		return -EINVAL;
	}
	do {
		size_t len = strcspn(++p, "=,");
		uint32_t *attribute = attribute_of(s, p, len);

		if (!attribute || p[len] != '=') {
			pb_error(command, "--map %s: %.*s: a map has max_entries=N, value_size=N "
					  "and key_size=N", text,
				 (int)len, p);
			return -EINVAL;
		}
		p += len + 1;
		*attribute = number_of(p, &end);
		if (!*attribute || (*end && *end != ',')) {
			pb_error(command, "--map %s: %.*s: not a size; give a number from 1 to %u",
				 text, (int)strcspn(p, ","), p, UINT32_MAX);
			return -EINVAL;
		}
		p = end;
	} while (*p == ',');
	return 0;
}

int bpf_sizes_check(const struct bpf_sizes *sizes, const char *command,
		    const struct pb_bpf_object *object, const char *path)
{
	char names[SHOWN * 40] = "";
	size_t n = 0;

	for (uint32_t i = 0; i < sizes->nr; i++) {
		if (pb_bpf_object_map(object, sizes->list[i].map) >= 0)
			continue;
		for (uint32_t k = 0; k < object->nr_maps && k < SHOWN; k++)
			n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%.32s", k ? ", " :
					      "", object->maps[k].name);
		pb_error(command, "--map %s: %s has no such map; %s%s%s", sizes->list[i].map, path,
			 object->nr_maps ? "it has " : "it has none", names,
			 object->nr_maps > SHOWN ? ", ..." : "");
		return -ENOENT;
	}
	return 0;
}
