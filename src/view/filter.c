/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Resolves the views' patterns. Each function gets a byte with its PB_FILTER_* bits. */
#include "view/filter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader/site_names.h"
#include "view/site_numbers.h"

struct pb_filters {
	struct pb_sites sites;
	const struct pb_analysis **modules;	/* [nr] readable modules that have sites */
	const struct pb_sites_module **numbers;	/* [nr] the function numbers of these modules */
	unsigned nr;
	uint8_t *marks;				/* [sites.total] */
	bool has_in, chooses;
};

struct pb_filters *pb_filters_new(struct pb_data *d)
{
	struct pb_filters *f = calloc(1, sizeof(*f));

	if (!f || pb_sites_init(&f->sites, d)) {
		free(f);
		return NULL;
	}
	f->modules = calloc(f->sites.nr_modules + 1, sizeof(*f->modules));
	f->numbers = calloc(f->sites.nr_modules + 1, sizeof(*f->numbers));
	f->marks = calloc(f->sites.total, 1);	/* most pages stay untouched and take no memory */
	if (!f->modules || !f->numbers || !f->marks) {
		pb_filters_free(f);
		return NULL;
	}
	for (size_t i = 0; i < f->sites.nr_modules; i++) {
		const struct pb_sites_module *m = &f->sites.modules[i];
		const struct pb_analysis *a = pb_symbols_module(d->symbols, m->module);

		if (!a)
			continue;
		f->modules[f->nr] = a;
		f->numbers[f->nr++] = m;
	}
	return f;
}

void pb_filters_free(struct pb_filters *f)
{
	if (!f)
		return;
	pb_sites_free(&f->sites);
	free(f->modules);
	free(f->numbers);
	free(f->marks);
	free(f);
}

struct marking {
	struct pb_filters *filters;
	uint8_t set, clear;
};

static void mark(void *arg, unsigned module, uint32_t func)
{
	struct marking *m = arg;
	const struct pb_sites_module *numbers = m->filters->numbers[module];
	uint8_t *p = &m->filters->marks[numbers->base + func];

	if (func < numbers->nr)
		*p = (uint8_t)((*p & ~m->clear) | m->set);
}

int pb_filters_add(struct pb_filters *f, unsigned marks, enum pb_match match, const char *pattern,
		   char *err, size_t errlen)
{
	bool clear = *pattern == '!';
	struct marking m = { f, clear ? 0 : (uint8_t)marks, clear ? (uint8_t)marks : 0 };
	char near[4 * PB_EDIT_MAX];
	int ret = pb_control_match(f->modules, f->nr, match, pattern, mark, &m, err, errlen);

	f->has_in |= !clear && marks & PB_FILTER_IN;
	f->chooses |= (marks & (PB_FILTER_IN | PB_FILTER_OUT)) != 0;
	if (ret)
		return ret < 0 ? ret : 0;
	pb_control_nearest_function(f->modules, f->nr, pattern, near, sizeof(near));
	snprintf(err, errlen, "no recorded function matches%s%s%s", *near ? "; did you mean " : "",
		 near, *near ? "?" : " (patchbay report lists them)");
	return -ENOENT;
}

unsigned pb_filters_number(const struct pb_filters *f, uint32_t number)
{
	return number < f->sites.total ? f->marks[number] : 0;
}

unsigned pb_filters_match(struct pb_filters *f, size_t image, uint32_t site)
{
	return f->marks[pb_sites_number(&f->sites, image, site)];
}

bool pb_filters_chooses(const struct pb_filters *f)
{
	return f->chooses;
}

bool pb_filters_has_in(const struct pb_filters *f)
{
	return f->has_in;
}
