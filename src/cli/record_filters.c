/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cli/record.h"

static int add(struct record_options *o, enum pb_control_file file, const char *value)
{
	int ret = pb_control_writes_add(&o->writes, file, value);

	if (ret)
		return record_error("the options come to more than a message holds");
	return 0;
}

static enum pb_control_file file_of(const struct record_options *o, char option)
{
	bool graph = o->tracer[0] == 'f' && o->tracer[8];

	switch (option) {
	case 'F':
		return graph ? PB_CF_SET_GRAPH_FUNCTION : PB_CF_SET_FTRACE_FILTER;
	case 'N':
		return graph ? PB_CF_SET_GRAPH_NOTRACE : PB_CF_SET_FTRACE_NOTRACE;
	case 'C':
		return PB_CF_GRAPH_CALLERS;
	case 'P':
		return PB_CF_SET_FTRACE_FILTER;
	default:
		return PB_CF_SET_FTRACE_NOTRACE;
	}
}

int record_filters_resolve(struct record_options *o, const struct record_target *t,
			   struct record_modules *m)
{
	int ret = 0;

	if (o->clock)
		ret = add(o, PB_CF_TRACE_CLOCK, o->clock);
	for (unsigned i = 0; i < o->nr_patterns && !ret; i++)
		ret = add(o, file_of(o, o->patterns[i].option), o->patterns[i].text);
	if (o->size && !ret)
		ret = add(o, PB_CF_SET_FTRACE_SIZE, o->size);
	if (o->depth && !ret)
		ret = add(o, PB_CF_MAX_GRAPH_DEPTH, o->depth);
	if (o->thresh[0] && !ret)
		ret = add(o, PB_CF_TRACING_THRESH, o->thresh);
	if (!ret)
		ret = add(o, PB_CF_CURRENT_TRACER, o->tracer);
	return ret;
}
