/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Changes the terminal's modes and restores them (screen.h). */
#include "view/screen.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#define ENTER	"\033[?1049h\033[?25l"	/* show the alternate screen, hide the cursor */
#define LEAVE	"\033[?25h\033[?1049l"

static struct {
	int fd;
	bool shown, keys, registered;
	struct termios former;
} screen;

static void restore(void)
{
	if (screen.keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &screen.former);
	screen.keys = false;
	if (screen.shown && write(screen.fd, LEAVE, sizeof(LEAVE) - 1) < 0) {
		/* the terminal is gone */
	}
	screen.shown = false;
}

static void read_keys(void)
{
	struct termios tio;

	/* leave the modes alone in the background: the kernel would stop this process */
	if (!isatty(STDIN_FILENO) || tcgetpgrp(STDIN_FILENO) != getpgrp() ||
	    tcgetattr(STDIN_FILENO, &screen.former))
		return;
	tio = screen.former;
	tio.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	tio.c_cc[VMIN] = 0;
	tio.c_cc[VTIME] = 0;
	tio.c_cc[VSUSP] = _POSIX_VDISABLE;	/* disable ^Z, because a stopped process can't
						 * restore the terminal */
	screen.keys = !tcsetattr(STDIN_FILENO, TCSANOW, &tio);
}

bool pb_screen_open(struct pb_out *o, bool keys)
{
	const char *term = getenv("TERM");

	if (!isatty(o->fd) || !term || !strcmp(term, "dumb"))
		return false;
	if (!screen.registered)
		atexit(restore);
	screen.registered = true;
	screen.fd = o->fd;
	screen.shown = true;
	if (keys)
		read_keys();
	pb_out_str(o, ENTER);
	pb_out_flush(o);
	return true;
}

void pb_screen_close(struct pb_out *o)
{
	pb_out_flush(o);
	restore();
}

void pb_screen_size(const struct pb_out *o, unsigned *lines, unsigned *columns)
{
	struct winsize size = { 0 };

	if (ioctl(o->fd, TIOCGWINSZ, &size) || !size.ws_row || !size.ws_col)
		size = (struct winsize){ .ws_row = 24, .ws_col = 80 };
	*lines = size.ws_row;
	*columns = size.ws_col;
}

/* Each line is cleared before its text is written. After a text that fills the line, the cursor is
 * still on the last character, and clearing the rest of the line would erase it. */
void pb_screen_begin(struct pb_out *o)
{
	pb_out_str(o, "\033[H\033[K");
}

void pb_screen_line(struct pb_out *o)
{
	pb_out_str(o, "\n\033[K");
}

void pb_screen_end(struct pb_out *o)
{
	pb_out_str(o, "\033[J");
	pb_out_flush(o);
}

char pb_screen_key(void)
{
	struct pollfd p = { STDIN_FILENO, POLLIN, 0 };
	char c;

	if (!screen.keys || poll(&p, 1, 0) <= 0 || read(STDIN_FILENO, &c, 1) != 1)
		return 0;
	return c;
}
