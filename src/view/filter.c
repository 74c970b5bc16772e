/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "view/filter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/record.h"
#include "base/glob.h"

#define KNOWN 4

struct pb_filters {
	struct pb_data *data;
	char **in, **out;
	size_t nr_in, nr_out;
	uint8_t **known;	/* [nr_images][PB_MAX_SITES], made when first used */
};

struct pb_filters *pb_filters_new(struct pb_data *d, char **in, size_t nr_in, char **out,
				  size_t nr_out)
{
	struct pb_filters *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	*f = (struct pb_filters){ d, in, out, nr_in, nr_out,
				  calloc(d->nr_images, sizeof(*f->known)) };
	if (f->known)
		return f;
	free(f);
	return NULL;
}

void pb_filters_free(struct pb_filters *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->data->nr_images; i++)
		free(f->known[i]);
	free(f->known);
	free(f);
}

bool pb_filters_has_in(const struct pb_filters *f)
{
	return f->nr_in;
}

static bool any(char **patterns, size_t nr, const char *raw, const char *pretty)
{
	char bare[512];

	snprintf(bare, sizeof(bare), "%.*s", (int)strcspn(pretty, "("), pretty);
	for (size_t i = 0; i < nr; i++)
		if (pb_glob_match(patterns[i], raw) || pb_glob_match(patterns[i], pretty) ||
		    pb_glob_match(patterns[i], bare))
			return true;
	return false;
}

unsigned pb_filters_match(struct pb_filters *f, size_t image, uint32_t site)
{
	uint8_t result = KNOWN;
	const char *raw, *pretty;

	if (!f->known[image])
		f->known[image] = calloc(1, PB_MAX_SITES);
	if (f->known[image] && f->known[image][site])
		return f->known[image][site];
	raw = pb_symbols_raw_name(f->data->symbols, image, site);
	pretty = pb_symbols_site(f->data->symbols, image, site).name;
	if (any(f->in, f->nr_in, raw, pretty))
		result |= PB_FILTER_IN;
	if (any(f->out, f->nr_out, raw, pretty))
		result |= PB_FILTER_OUT;
	if (f->known[image])
		f->known[image][site] = result;
	return result;
}
