/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One number for each function of the session, so that sums are arrays: the
 * same function has the same number in every program image that maps its
 * module. Numbers below PB_MAX_SITES are sites of which nothing is known.
 *
 * Context: the observer, one thread.
 */
#ifndef PB_VIEW_SITES_H
#define PB_VIEW_SITES_H
#include "reader/data.h"
#include "reader/symbols.h"

struct pb_sites_range {
	uint32_t first, nr;	/* sites */
	uint32_t delta;		/* number - site */
};

struct pb_sites_image {
	const struct pb_sites_range *last;	/* found last; never NULL */
	struct pb_sites_range *ranges;
	size_t nr;
};

struct pb_sites {
	struct pb_data *data;
	struct pb_sites_image *images;
	struct pb_sites_range *ranges;
	struct pb_sites_module { uint32_t module, base, nr; size_t map; } *modules;
	size_t nr_modules;
	uint32_t total;		/* numbers are below it */
};

int pb_sites_init(struct pb_sites *s, struct pb_data *d);
void pb_sites_free(struct pb_sites *s);
uint32_t pb_sites_search(struct pb_sites_image *im, uint32_t site);
struct pb_function pb_sites_function(const struct pb_sites *s, uint32_t number);

static inline uint32_t pb_sites_number(struct pb_sites *s, size_t image, uint32_t site)
{
	struct pb_sites_image *im = &s->images[image];

	if (__builtin_expect(site - im->last->first < im->last->nr, 1))
		return site + im->last->delta;
	return pb_sites_search(im, site);
}
#endif
