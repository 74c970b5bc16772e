/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Parses and checks values of control files: numbers, durations, patterns. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/glob.h"
#include "control/control.h"

int pb_control_parse_u64(const char *text, uint64_t max, uint64_t *out)
{
	char *end;

	while (isspace((unsigned char)*text))
		text++;
	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	unsigned long long n = strtoull(text, &end, 10);
	while (isspace((unsigned char)*end))
		end++;
	if (errno || *end || end == text || n > max)
		return -EINVAL;
	*out = n;
	return 0;
}

/* Reads the integer part and up to 9 decimals, and scales them to ns without floating point. */
int pb_control_parse_duration(const char *text, uint64_t *ns)
{
	static const struct { const char *name; uint64_t ns; } units[] = {
		{ "", 1000 }, { "us", 1000 }, { "ns", 1 }, { "ms", 1000000 }, { "s", 1000000000 },
		{ "usec", 1000 }, { "nsec", 1 }, { "msec", 1000000 }, { "sec", 1000000000 },
	};
	uint64_t whole = 0, part = 0, scale = 1;
	const char *p = text;

	if (!isdigit((unsigned char)*p) && *p != '.')
		return -EINVAL;
	for (; isdigit((unsigned char)*p); p++)
		if (whole > UINT64_MAX / 20 || (whole = whole * 10 + (uint64_t)(*p - '0'), 0))
			return -EINVAL;
	if (*p == '.') {
		p++;
		if (!isdigit((unsigned char)*p))
			return -EINVAL;
		for (; isdigit((unsigned char)*p); p++)
			if (scale < 1000000000) {
				part = part * 10 + (uint64_t)(*p - '0');
				scale *= 10;
			}
	}
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(p, units[i].name))
			continue;
		if (__builtin_mul_overflow(whole, units[i].ns, ns) ||
		    __builtin_add_overflow(*ns, (uint64_t)((unsigned __int128)part *
							   units[i].ns / scale), ns))
			return -EINVAL;
		return 0;
	}
	return -EINVAL;
}

void pb_control_format_us(uint64_t ns, char *buf, size_t len)
{
	unsigned part = (unsigned)(ns % 1000);

	if (part)
		snprintf(buf, len, "%llu.%03u", (unsigned long long)(ns / 1000), part);
	else
		snprintf(buf, len, "%llu", (unsigned long long)(ns / 1000));
}

int pb_control_pattern_next(const char **p, struct pb_control_pattern *out,
			    char *err, size_t errlen)
{
	const char *s = *p, *end, *colon, *module;

	while (isspace((unsigned char)*s))
		s++;
	if (!*s) {
		*p = s;
		return 0;
	}
	for (end = s; *end && !isspace((unsigned char)*end); end++)
		;
	*p = end;
	*out = (struct pb_control_pattern){ .remove = *s == '!' };
	if (out->remove)
		s++;
	colon = pb_glob_command(s, (size_t)(end - s), ":");
	module = pb_glob_command(s, (size_t)(end - s), PB_GLOB_MODULE);
	out->text = s;
	out->text_len = (size_t)((colon ? colon : end) - s);
	if (colon) {
		if (colon != module) {
			snprintf(err, errlen,
				 "'%.*s': the only command after a pattern is :mod:MODULE",
				 (int)(end - s), s);
			return -EINVAL;
		}
		out->module = module + strlen(PB_GLOB_MODULE);
		out->module_len = (size_t)(end - out->module);
		if (!out->module_len || (out->module_len == 1 && *out->module == '!')) {
			snprintf(err, errlen, "'%.*s': no module after :mod:%s", (int)(end - s), s,
				 out->module_len ? "!" : "");
			return -EINVAL;
		}
	}
	/* ":mod:M" without a pattern means all functions of M, as in the kernel */
	if (!out->text_len && !out->module) {
		snprintf(err, errlen, "'!': no pattern after it");
		return -EINVAL;
	}
	return 1;
}

static int invalid(const char *value, const char *what, char *err, size_t errlen)
{
	snprintf(err, errlen, "'%.200s' %s", value, what);
	return -EINVAL;
}

static int validate_patterns(const char *value, char *err, size_t errlen)
{
	struct pb_control_pattern pat;
	int ret;

	do
		ret = pb_control_pattern_next(&value, &pat, err, errlen);
	while (ret > 0);
	return ret;
}

static int validate_number(const char *value, uint64_t max, char *err, size_t errlen)
{
	char text[100];
	uint64_t n;

	if (!pb_control_parse_u64(value, max, &n))
		return 0;
	snprintf(text, sizeof(text), "is not a number from 0 to %llu", (unsigned long long)max);
	return invalid(value, text, err, errlen);
}

/* Reads a duration that may have white space around it. */
static int parse_time(const char *value, uint64_t *ns)
{
	char copy[64];
	size_t len;

	value += strspn(value, " \t\n");
	len = strlen(value);
	while (len && isspace((unsigned char)value[len - 1]))
		len--;
	if (len >= sizeof(copy))
		return -EINVAL;
	snprintf(copy, sizeof(copy), "%.*s", (int)len, value);
	return pb_control_parse_duration(copy, ns);
}

static int validate_time(const char *value, char *err, size_t errlen)
{
	uint64_t ns;

	if (!parse_time(value, &ns))
		return 0;
	return invalid(value, "is not a time; give microseconds, or a number with ns, us, ms or s",
		       err, errlen);
}

const char *pb_control_plain(enum pb_control_file file, const char *value, char *buf, size_t len)
{
	const struct pb_control_info *info = pb_control_info(file);
	uint64_t n;

	if (!info)
		return value;
	if (info->type == PB_CONTROL_TIME && !parse_time(value, &n))
		pb_control_format_us(n, buf, len);
	else if (info->type == PB_CONTROL_NUMBER && !pb_control_parse_u64(value, UINT64_MAX, &n))
		snprintf(buf, len, "%llu", (unsigned long long)n);
	else
		return value;
	return buf;
}

/* Checks that the value is one of the names. The list of names ends with NULL. `what` is a word for
 * the message, for example "tracer". */
static int validate_name(const char *value, const char *what, const char *const *names,
			 char *err, size_t errlen)
{
	size_t len = strcspn(value, " \t\n"), at;
	char text[200];

	if (!value[len + strspn(value + len, " \t\n")])
		for (size_t i = 0; names[i]; i++)
			if (len == strlen(names[i]) && !strncmp(names[i], value, len))
				return 0;
	at = (size_t)snprintf(text, sizeof(text), "is not a %s; valid are ", what);
	for (size_t i = 0; names[i]; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s", names[i],
				       !names[i + 1] ? "" : names[i + 2] ? ", " : " and ");
	return invalid(value, text, err, errlen);
}

int pb_control_validate(enum pb_control_file file, const char *value, bool append,
			char *err, size_t errlen)
{
#define NAME(name) name,
	static const char *const tracers[] = { PB_TRACERS(NAME) NULL };
	static const char *const clocks[] = { PB_TRACE_CLOCKS(NAME) NULL };
#undef NAME
	const struct pb_control_info *info = pb_control_info(file);

	if (!info)
		return -ENOENT;
	if (!(info->mode & PB_CONTROL_W)) {
		snprintf(err, errlen, "can only be read");
		return -EACCES;
	}
	switch (info->type) {
	case PB_CONTROL_PATTERNS:
		return validate_patterns(value, err, errlen);
	case PB_CONTROL_NUMBER:
		return validate_number(value, info->most, err, errlen);
	case PB_CONTROL_TIME:
		return validate_time(value, err, errlen);
	case PB_CONTROL_TRACER:
		return validate_name(value, "tracer", tracers, err, errlen);
	case PB_CONTROL_CLOCK:
		return validate_name(value, "clock", clocks, err, errlen);
	case PB_CONTROL_TEXT:
		break;		/* the agent checks the text */
	}
	return 0;
}
