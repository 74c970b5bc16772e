/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tests the control library: values, packed writes, and suggestions of similar names. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "abi/messages.h"
#include "base/glob.h"
#include "control/control.h"
#include "control/resolve.h"

static void durations(void **state)
{
	static const struct { const char *text; uint64_t ns; } good[] = {
		{ "10", 10000 }, { "10us", 10000 }, { "500ns", 500 }, { "1.5ms", 1500000 },
		{ "2s", 2000000000 }, { "0.25", 250 }, { ".5s", 500000000 }, { "0", 0 },
	};
	static const char *const bad[] = {
		"", "x", "-1", "1.", "1 us", "10xs", "1e3", "99999999999999999s"
	};
	char buf[32];
	uint64_t ns;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(pb_control_parse_duration(good[i].text, &ns), 0);
		assert_int_equal(ns, good[i].ns);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(pb_control_parse_duration(bad[i], &ns), -EINVAL);
	pb_control_format_us(1500, buf, sizeof(buf));
	assert_string_equal(buf, "1.500");
	pb_control_format_us(42000, buf, sizeof(buf));
	assert_string_equal(buf, "42");
}

static void patterns(void **state)
{
	struct pb_control_pattern p;
	const char *text = " foo !ba*:mod:libx* ns::f\n";
	char err[200];

	assert_int_equal(pb_control_pattern_next(&text, &p, err, sizeof(err)), 1);
	assert_true(p.text_len == 3 && !p.remove && !p.module);
	assert_int_equal(pb_control_pattern_next(&text, &p, err, sizeof(err)), 1);
	assert_true(p.text_len == 3 && p.remove && p.module_len == 5);
	assert_int_equal(pb_control_pattern_next(&text, &p, err, sizeof(err)), 1);
	assert_true(p.text_len == 5 && !p.module);
	assert_int_equal(pb_control_pattern_next(&text, &p, err, sizeof(err)), 0);
	text = "f:traceon";
	assert_int_equal(pb_control_pattern_next(&text, &p, err, sizeof(err)), -EINVAL);
}

static void validation(void **state)
{
	char err[300];

	assert_int_equal(pb_control_validate(PB_CF_CURRENT_TRACER, "function\n", false, err,
					     sizeof(err)), 0);
	assert_int_equal(pb_control_validate(PB_CF_CURRENT_TRACER, "funct", false, err,
					     sizeof(err)), -EINVAL);
	assert_int_equal(pb_control_validate(PB_CF_TRACING_ON, "2", false, err, sizeof(err)),
			 -EINVAL);
	assert_int_equal(pb_control_validate(PB_CF_AVAILABLE_TRACERS, "x", false, err, sizeof(err)),
			 -EACCES);
	assert_int_equal(pb_control_find("tracing/tracing_on"), PB_CF_TRACING_ON);
	assert_int_equal(pb_control_find("nosuch"), PB_NR_CONTROL_FILES);
}

/* A namespace of C++ may be named "mod", and its name has two colons on both sides. */
static void namespaces(void **state)
{
	static const char names[] = "_ZN1a3mod1fEv [prog]\n_Z5otherv [prog]\n";
	static const struct { const char *pattern; int at; } commands[] = {
		{ "f:mod:m", 1 }, { "a::mod::f", -1 }, { "a::mod:f", -1 }, { "a::mod::f:mod:m", 9 },
		{ ":mod:m", 0 }, { "a:::mod:m", 3 }, { "x[[:alpha:]]:mod:m", 12 }, { "f:mod", -1 },
		{ "a::mod:", -1 }, { "", -1 },
	};
	char near[4 * PB_EDIT_MAX], *got;

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		const char *p = commands[i].pattern;
		const char *found = pb_glob_command(p, strlen(p), PB_GLOB_MODULE);

		assert_int_equal(found ? found - p : -1, commands[i].at);
	}
	got = pb_control_by_demangled(names, "a::mod::f a::mod::*:mod:pr*");
	assert_non_null(got);
	assert_string_equal(got, "_ZN1a3mod1fEv _ZN1a3mod1fEv:mod:pr* ");
	free(got);
	assert_null(pb_control_by_demangled(names, "a::mod::f:mod:elsewhere"));
	assert_null(pb_control_by_demangled(names, "a::mod::f:mod:!pr*"));
	got = pb_control_by_demangled(names, "a::mod::f:mod:!else*");
	assert_non_null(got);
	assert_string_equal(got, "_ZN1a3mod1fEv:mod:!else* ");
	free(got);
	pb_control_nearest_name("a::mod::first [prog]\n", "a::mod::frist:mod:prog", near,
				sizeof(near));
	assert_string_equal(near, "a::mod::first");
	/* a pattern isn't suggested for itself */
	pb_control_nearest_name("leaf [prog]\nleak [prog]\n", "leaf", near, sizeof(near));
	assert_string_equal(near, "leak");
	pb_control_nearest_name("leaf [prog]\n", "!leaf", near, sizeof(near));
	assert_string_equal(near, "");
	pb_control_nearest_name("leaf [prog]\n", "^leaf$", near, sizeof(near));
	assert_string_equal(near, "leaf");
	pb_control_nearest_name("leaf [prog]\nleak [prog]\n", "leaf:mod:!prog", near, sizeof(near));
	assert_string_equal(near, "leak");
	pb_control_nearest_name("leaf [prog]\n", "!leaf:mod:other", near, sizeof(near));
	assert_string_equal(near, "");
}

/* After ":mod:", a leading '!' inverts the module, as in ftrace. */
static void inverted_modules(void **state)
{
	static const struct { const char *pattern, *module; bool matches; } cases[] = {
		{ "libx*", "libx.so", true }, { "!libx*", "libx.so", false },
		{ "!libx*", "prog", true }, { "!*", "prog", false }, { "![a-l]*", "prog", true },
		{ "!!x", "!x", false }, { "!!x", "x", true }, { "\\!x", "!x", true },
	};
	struct pb_control_pattern p;
	const char *text = "f:mod:!m g:mod:!";
	char err[200];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(pb_glob_match_module(cases[i].pattern, cases[i].module),
				 cases[i].matches);
	assert_int_equal(pb_control_pattern_next(&text, &p, err, sizeof(err)), 1);
	assert_true(p.text_len == 1 && !p.remove && p.module_len == 2);
	assert_int_equal(pb_control_pattern_next(&text, &p, err, sizeof(err)), -EINVAL);
	assert_string_equal(err, "'g:mod:!': no module after :mod:!");
}

static int check_write(void *arg, const char *path, bool append, const char *value)
{
	unsigned *n = arg;

	assert_string_equal(path, *n < 2 ? "set_ftrace_filter" : "current_tracer");
	assert_int_equal(append, *n == 1);
	assert_string_equal(value, *n == 0 ? "a" : *n == 1 ? "b" : "function");
	++*n;
	return 0;
}

static void writes(void **state)
{
	struct pb_control_writes w = { 0 };
	char *big = calloc(1, 70000);
	unsigned n = 0;

	assert_int_equal(pb_control_writes_add(&w, PB_CF_SET_FTRACE_FILTER, "a"), 0);
	assert_int_equal(pb_control_writes_add(&w, PB_CF_SET_FTRACE_FILTER, "b"), 0);
	assert_int_equal(pb_control_writes_add(&w, PB_CF_CURRENT_TRACER, "function"), 0);
	assert_int_equal(pb_control_writes_each(w.buf, w.len, w.nr, check_write, &n), 0);
	assert_int_equal(n, 3);
	n = 0;
	assert_int_equal(pb_control_writes_each(w.buf, w.len - 1, w.nr, check_write, &n), -EPROTO);
	n = 0;
	assert_int_equal(pb_control_writes_each(w.buf, w.len, 4, check_write, &n), -EPROTO);
	memset(big, 'x', 69999);
	assert_int_equal(pb_control_writes_add(&w, PB_CF_CURRENT_TRACER, big), -EMSGSIZE);
	free(big);
	pb_control_writes_free(&w);
}

static void distances(void **state)
{
	assert_int_equal(pb_edit_distance("main", "main", 3), 0);
	assert_int_equal(pb_edit_distance("mian", "main", 3), 1);
	assert_int_equal(pb_edit_distance("man", "main", 3), 1);
	assert_int_equal(pb_edit_distance("kitten", "sitting", 3), 3);
	assert_int_equal(pb_edit_distance("kitten", "sitting", 2), 3);
	assert_int_equal(pb_edit_distance("a", "abcdefgh", 2), 3);
}

/* Connects to a recorder that answers HELLO with a message of this type and body. Returns the
 * result of pb_control_open(). */
static int open_with_answer(uint32_t type, const void *body, uint32_t len, char *err, size_t errlen)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), ret, status;
	struct pb_control *c = NULL;
	pid_t pid;

	snprintf(a.sun_path, sizeof(a.sun_path), "/tmp/test_session_control.%d", (int)getpid());
	unlink(a.sun_path);
	assert_int_equal(bind(listener, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(listener, 1), 0);
	pid = fork();
	if (!pid) {
		char buf[sizeof(struct pb_msg) + 256];
		struct pb_msg m = { .type = type, .len = len };
		int fd = accept(listener, NULL, NULL);

		if (recv(fd, buf, sizeof(buf), 0) < (ssize_t)sizeof(m))
			_exit(1);
		memcpy(buf, &m, sizeof(m));
		if (len)
			memcpy(buf + sizeof(m), body, len);
		_exit(send(fd, buf, sizeof(m) + len, 0) != (ssize_t)(sizeof(m) + len));
	}
	assert_true(pid > 0);
	close(listener);
	ret = pb_control_open(&c, a.sun_path, 1, err, errlen);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	pb_control_close(c);
	unlink(a.sun_path);
	return ret;
}

/* Each failure has its own error message, after the path of the socket. */
static void answers_to_hello(void **state)
{
	struct { struct pb_msg_error e; char text[16]; } refusal = {
		{ .error = -ESRCH }, "no such process"
	};
	char err[300];

	assert_int_equal(open_with_answer(PB_MSG_READY, NULL, 0, err, sizeof(err)), 0);
	assert_int_equal(open_with_answer(PB_MSG_ERROR, &refusal, sizeof(refusal), err,
					  sizeof(err)), -ESRCH);
	assert_non_null(strstr(err, "/test_session_control."));
	assert_non_null(strstr(err, ": no such process"));
	assert_int_equal(open_with_answer(PB_MSG_ERROR, &refusal, 1, err, sizeof(err)), -EPROTO);
	assert_non_null(strstr(err, "cut off"));
	assert_int_equal(open_with_answer(PB_MSG_WELCOME, &refusal, 4, err, sizeof(err)), -EPROTO);
	assert_non_null(strstr(err, "unexpected answer"));
}

static bool accepts_nothing;

/* Replaces libc's function. If accepts_nothing is set, the call fails as it does if the recorder is
 * stopped, but only if the socket has a timeout. Without a timeout, the call would never end. */
int connect(int fd, const struct sockaddr *a, socklen_t len)
{
	struct timeval tv = { 0 };
	socklen_t size = sizeof(tv);

	if (!accepts_nothing)
		return (int)syscall(SYS_connect, fd, a, len);
	getsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, &size);
	errno = tv.tv_sec ? EAGAIN : EDEADLK;
	return -1;
}

/* A recorder that accepts no connection doesn't block its client for ever. */
static void nothing_accepts(void **state)
{
	struct pb_control *c;
	char err[300];

	accepts_nothing = true;
	assert_int_equal(pb_control_open(&c, "/tmp/none", 1, err, sizeof(err)), -EAGAIN);
	assert_string_equal(err, "/tmp/none: the recorder doesn't answer");
	accepts_nothing = false;
}

/* While `silent` is set, no message comes, and each wait for one ends at once. */
static bool silent;
static unsigned waits;

ssize_t recvmsg(int fd, struct msghdr *h, int flags)
{
	if (!silent)
		return syscall(SYS_recvmsg, fd, h, flags);
	waits++;
	errno = EAGAIN;
	return -1;
}

/* A recorder that answers HELLO and two more requests. The answers to both are the same. */
static void answer_three(int listener)
{
	struct { struct pb_msg m; struct pb_msg_file f; } reply = {
		{ .type = PB_MSG_REPLY, .len = sizeof(reply.f) }, { 0 }
	};
	struct pb_msg ready = { .type = PB_MSG_READY };
	int fd = accept(listener, NULL, NULL);
	char buf[1000];

	if (recv(fd, buf, sizeof(buf), 0) <= 0 || send(fd, &ready, sizeof(ready), 0) < 0)
		_exit(1);
	for (int i = 0; i < 2 && recv(fd, buf, sizeof(buf), 0) > 0; i++)
		send(fd, &reply, sizeof(reply), MSG_NOSIGNAL);
	_exit(0);
}

/* The answer to a request comes after the client has given up. The client doesn't take it for the
 * answer to the next request. */
static void late_answer(void **state)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	char err[300], *text = NULL;
	struct pb_control *c;
	size_t len;

	snprintf(a.sun_path, sizeof(a.sun_path), "/tmp/test_session_control.%d", (int)getpid());
	for (int less = 0; less < 2; less++) {
		int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), status;

		unlink(a.sun_path);
		assert_int_equal(bind(listener, (struct sockaddr *)&a, sizeof(a)), 0);
		assert_int_equal(listen(listener, 1), 0);
		pid_t pid = fork();
		if (!pid)
			answer_three(listener);
		close(listener);
		assert_int_equal(pb_control_open(&c, a.sun_path, 1, err, sizeof(err)), 0);
		if (less)
			pb_control_wait_less(c);
		silent = true;
		waits = 0;
		assert_int_equal(pb_control_write(c, "set_ftrace_filter", "x", false, err,
						  sizeof(err)), -ETIMEDOUT);
		silent = false;
		assert_int_equal(waits, less ? 1 : 6);
		assert_string_equal(err, less ? "no answer within 10 s" : "no answer within 60 s");
		assert_int_equal(pb_control_read(c, "available_filter_functions", &text, &len, err,
						 sizeof(err)), -EPIPE);
		pb_control_close(c);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	unlink(a.sun_path);
}

/* A path that is too long for a socket isn't cut. */
static void long_path(void **state)
{
	char path[200] = "/tmp/", err[300];
	struct pb_control *c;

	memset(path + 5, 'x', sizeof(path) - 6);
	path[sizeof(path) - 1] = 0;
	assert_int_equal(pb_control_open(&c, path, 1, err, sizeof(err)), -ENAMETOOLONG);
	assert_non_null(strstr(err, "File name too long"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(durations),
		cmocka_unit_test(patterns),
		cmocka_unit_test(namespaces),
		cmocka_unit_test(inverted_modules),
		cmocka_unit_test(validation),
		cmocka_unit_test(writes),
		cmocka_unit_test(distances),
		cmocka_unit_test(answers_to_hello),
		cmocka_unit_test(nothing_accepts),
		cmocka_unit_test(late_answer),
		cmocka_unit_test(long_path),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
