/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Buffers output, converts numbers, and starts the pager. */
#include "view/out.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/sys.h"

#define PROGRESS_AFTER	500000000	/* ns */
#define PROGRESS_EVERY	100000000

/* If the pager doesn't exist, the shell prints an error message, and cat shows the whole output. */
#define PAGER_SCRIPT	"%s\ns=$?; [ $s = 127 ] && exec cat; exit $s"

static void run_pager(const struct pb_out *o, const int *p, const char *pager)
{
	char *script;

	signal(SIGPIPE, o->old_pipe);
	dup2(p[0], 0);
	close(p[0]);
	close(p[1]);
	if (asprintf(&script, PAGER_SCRIPT, pager) > 0)
		execl("/bin/sh", "sh", "-c", script, (char *)NULL);
	_exit(127);
}

static void start_pager(struct pb_out *o)
{
	const char *pager = getenv("PAGER");
	int p[2];

	o->want_pager = false;
	if (!pager)
		pager = "less -FRX";
	if (!*pager || !strcmp(pager, "cat") || pipe(p))
		return;
	o->pager = fork();
	if (o->pager == 0)
		run_pager(o, p, pager);
	close(p[0]);
	if (o->pager < 0) {
		close(p[1]);
		o->pager = 0;
		return;
	}
	o->fd = p[1];
	/* now only the pager handles ^C; this process ends when the pager ends */
	signal(SIGINT, SIG_IGN);
}

void pb_out_open(struct pb_out *o, const char *command, bool pager)
{
	const char *term = getenv("TERM");
	bool tty = isatty(STDOUT_FILENO), dumb = !term || !strcmp(term, "dumb");

	o->fd = STDOUT_FILENO;
	o->error = 0;
	o->pager = 0;
	o->used = 0;
	o->begun = o->progress = false;
	o->command = command;
	o->colour = tty && !dumb && !getenv("NO_COLOR");
	o->want_pager = pager && tty;
	o->progress_next = isatty(STDERR_FILENO) && !dumb ? pb_now_ns() + PROGRESS_AFTER : 0;
	o->old_pipe = signal(SIGPIPE, SIG_IGN);
}

void pb_out_progress(struct pb_out *o, uint64_t done, uint64_t total)
{
	uint64_t now;

	if (!o->progress_next || o->error)
		return;
	now = pb_now_ns();
	if (now < o->progress_next)
		return;
	o->progress_next = now + PROGRESS_EVERY;
	fprintf(stderr, "\r\033[Kpatchbay %s: %u %% ", o->command,
		total ? (unsigned)((done < total ? done : total) * 100.0 / (double)total) : 0);
	o->progress = true;
}

static void clear_progress(struct pb_out *o)
{
	if (o->progress)
		fputs("\r\033[K", stderr);
	o->progress = false;
}

/* Called before the first write. */
static void begin(struct pb_out *o)
{
	o->begun = true;
	if (isatty(o->fd)) {
		clear_progress(o);
		o->progress_next = 0;
	}
	if (o->want_pager)
		start_pager(o);
}

/* Waits until the descriptor takes more output. It doesn't block if the traced program, or another
 * process that has the same open file, has set O_NONBLOCK. */
static bool wait_for_room(const struct pb_out *o)
{
	struct pollfd p = { o->fd, POLLOUT, 0 };

	return poll(&p, 1, -1) > 0 || errno == EINTR;
}

void pb_out_flush(struct pb_out *o)
{
	size_t done = 0;

	if (!o->begun && o->used)
		begin(o);
	while (done < o->used && !o->error) {
		ssize_t n = write(o->fd, o->buf + done, o->used - done);

		if (n < 0 && errno != EINTR && (errno != EAGAIN || !wait_for_room(o)))
			o->error = errno;
		else if (n > 0)
			done += (size_t)n;
	}
	o->used = 0;
}

int pb_out_close(struct pb_out *o)
{
	pb_out_flush(o);
	clear_progress(o);
	o->progress_next = 0;
	if (o->pager) {
		int status;

		close(o->fd);
		while (waitpid(o->pager, &status, 0) < 0 && errno == EINTR)
			;
	}
	return o->error == EPIPE ? 0 : -o->error;
}

void pb_out_mem(struct pb_out *o, const char *s, size_t len)
{
	while (len > PB_OUT_SIZE - o->used) {
		size_t part = PB_OUT_SIZE - o->used;

		memcpy(o->buf + o->used, s, part);
		o->used += part;
		s += part;
		len -= part;
		pb_out_flush(o);
	}
	memcpy(o->buf + o->used, s, len);
	o->used += len;
}

void pb_out_u64(struct pb_out *o, uint64_t value, unsigned width, char fill)
{
	char digits[20];
	unsigned n = 0;

	do
		digits[sizeof(digits) - ++n] = (char)('0' + value % 10);
	while (value /= 10);
	for (unsigned i = n; i < width; i++)
		pb_out_char(o, fill);
	pb_out_mem(o, digits + sizeof(digits) - n, n);
}

void pb_out_commas(struct pb_out *o, uint64_t value)
{
	if (value >= 1000) {
		pb_out_commas(o, value / 1000);
		pb_out_char(o, ',');
	}
	pb_out_u64(o, value % 1000, value >= 1000 ? 3 : 0, '0');
}

void pb_out_spaces(struct pb_out *o, size_t nr)
{
	static const char spaces[64] =
		"                                                               ";

	for (; nr > 63; nr -= 63)
		pb_out_mem(o, spaces, 63);
	pb_out_mem(o, spaces, nr);
}

void pb_out_fmt(struct pb_out *o, const char *fmt, ...)
{
	char small[512], *text = small;
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(small, sizeof(small), fmt, args);
	va_end(args);
	if (n < 0)
		return;
	if ((size_t)n >= sizeof(small)) {
		va_start(args, fmt);
		n = vasprintf(&text, fmt, args);
		va_end(args);
		if (n < 0)
			return;
	}
	pb_out_mem(o, text, (size_t)n);
	if (text != small)
		free(text);
}

/* Returns the length of the UTF-8 sequence at s, or 0 if there is none. */
static size_t utf8_len(const unsigned char *s)
{
	size_t n = s[0] < 0x80 ? 1 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : s[0] >= 0xe0 &&
		   s[0] < 0xf0 ? 3 : s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : 0;

	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

void pb_out_json(struct pb_out *o, const char *s)
{
	pb_out_char(o, '"');
	for (const unsigned char *p = (const unsigned char *)s; *p;) {
		size_t n = utf8_len(p);

		if (*p == '"' || *p == '\\') {
			pb_out_char(o, '\\');
			pb_out_char(o, (char)*p);
		} else if (*p < ' ') {
			pb_out_fmt(o, "\\u%04x", *p);
		} else if (n) {
			pb_out_mem(o, (const char *)p, n);
		} else {
			pb_out_str(o, "\\ufffd");
		}
		p += n ? n : 1;
	}
	pb_out_char(o, '"');
}

void pb_out_csv(struct pb_out *o, const char *s)
{
	if (!strpbrk(s, ",\"\r\n")) {
		pb_out_str(o, s);
		return;
	}
	pb_out_char(o, '"');
	for (; *s; s++) {
		if (*s == '"')
			pb_out_char(o, '"');
		pb_out_char(o, *s);
	}
	pb_out_char(o, '"');
}
