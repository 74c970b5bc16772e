/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tests the whole recorder with a fake agent (fake_agent.c). Everything that the agent records must
 * be in the data directory. Nothing that an agent does may harm the recorder.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "../test_dir.h"
#include "cli/record_options.h"
#include "recorder/modules.h"
#include "recorder/patterns.h"
#include "recorder/recording.h"
#include "recorder/ring_memory.h"
#include "recorder/run.h"
#include "recorder/session_dir.h"
#include "recorder/settings.h"
#include "recorder/start_program.h"
#include "recorder/target.h"
#include "recorder/texts.h"

#define WORDS_FULL 2000

static char data[64], errors[64], text[8192];

/* --- running ------------------------------------------------------------ */

/* Does what cli/cmd-record.c does, but with the fake agent in the session. */
static int record(int argc, char **argv)
{
	static struct record_options o;
	static struct record_target t;
	struct record_modules m = { .options = &o };
	struct record_session s;
	struct record_signals signals;
	struct record_ring ring = { 0 };
	int ret = record_options_parse(&o, argc, argv);

	if (!ret)
		ret = record_target_resolve(&t, o.argv[0]);
	if (!ret)
		ret = record_filters_resolve(&o, &t, &m);
	if (ret) {
		record_modules_free(&m);
		record_options_free(&o);
		return ret;
	}
	record_signals_take(&signals);
	ret = record_session_open(&s, o.serve);
	if (ret)
		return ret;
	snprintf(s.agent, sizeof(s.agent), "%s", FAKE_AGENT_PATH);
	ret = record_ring_create(&ring, o.buffer, o.mode);
	if (!ret)
		ret = record_run(&o, &t, &s, &ring, &m, &signals);
	record_session_close(&s);
	if (!access(s.dir, F_OK))
		ret = 98;
	if (ring.map)
		munmap(ring.map, ring.geometry.size);
	record_modules_free(&m);
	record_options_free(&o);
	return ret;
}

/* Runs `record -d DATA ARGS...` and returns its exit status. Its stderr is in `text`. fake: the
 * fake agent's actions. The ARGS follow `fake`, and end with NULL. */
static int run(const char *fake, ...)
{
	char *argv[40] = { "record", "-d", data };
	int argc = 3, status;
	va_list ap;

	va_start(ap, fake);
	while (argc < 39 && (argv[argc] = va_arg(ap, char *)))
		argc++;
	va_end(ap);
	pid_t pid = fork();
	if (!pid) {
		int fd = open(errors, O_CREAT | O_TRUNC | O_WRONLY, 0600);

		dup2(fd, 2);
		setenv("FAKE_AGENT", fake, 1);
		setenv("XDG_RUNTIME_DIR", dir, 1);
		alarm(600);
		exit(record(argc, argv));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	int fd = open(errors, O_RDONLY);
	ssize_t n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	if (!WIFEXITED(status))
		fail_msg("the recorder was killed by signal %d: %s", WTERMSIG(status), text);
	return WEXITSTATUS(status);
}

/* --- looking ------------------------------------------------------------ */

struct seen {
	unsigned chunks, words, metas[16], open;
	uint64_t lost;
	struct pb_meta_end end;
};

static char *slurp(const char *name, size_t *len)
{
	char path[100];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", data, name);
	int fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	char *p = malloc((size_t)st.st_size + 1);
	assert_int_equal(read(fd, p, (size_t)st.st_size), st.st_size);
	close(fd);
	*len = (size_t)st.st_size;
	return p;
}

static struct seen look(void)
{
	struct seen s = { 0 };
	size_t len, at = sizeof(struct pb_data_header);
	char *p = slurp("chunks", &len);

	assert_true(((struct pb_data_header *)p)->magic == PB_DATA_MAGIC_CHUNKS);
	while (at < len) {
		struct pb_chunk *c = (void *)(p + at);

		assert_true(at + sizeof(*c) <= len && c->used % 8 == 0);
		at += sizeof(*c) + c->used;
		s.chunks++;
		s.words += c->used / 8;
		s.open += c->state == PB_CHUNK_OPEN;
	}
	assert_int_equal(at, len);
	free(p);
	p = slurp("meta", &len);
	assert_true(((struct pb_data_header *)p)->magic == PB_DATA_MAGIC_META);
	for (at = sizeof(struct pb_data_header); at < len;) {
		struct pb_meta *m = (void *)(p + at);

		assert_true(at + sizeof(*m) <= len && m->type < 16);
		s.metas[m->type]++;
		if (m->type == PB_META_THREAD)
			s.lost += ((struct pb_ring_thread *)(m + 1))->lost;
		if (m->type == PB_META_END)
			memcpy(&s.end, m + 1, sizeof(s.end));
		at += sizeof(*m) + (m->len + 7ul) / 8 * 8;
	}
	assert_int_equal(at, len);
	free(p);
	return s;
}

/* --- tests -------------------------------------------------------------- */

static void records_all_chunks(void **state)
{
	assert_int_equal(run("chunks=300,threads=4,open,lost=7", "-b", "1M", "/bin/true", NULL), 0);
	struct seen s = look();
	assert_int_equal(s.chunks, 4 * 301);
	assert_int_equal(s.words, 4 * (300 * WORDS_FULL + 4));
	assert_int_equal(s.open, 4);
	assert_int_equal(s.lost, 28);
	assert_int_equal(s.end.lost, 28);
	assert_int_equal(s.end.records, 4 * (300 * WORDS_FULL + 3));
	assert_int_equal(s.end.threads, 4);
	assert_int_equal(s.metas[PB_META_THREAD], 4);
	assert_int_equal(s.metas[PB_META_IMAGE], 1);
	assert_int_equal(s.metas[PB_META_READY], 1);
	assert_int_equal(s.metas[PB_META_EXIT], 1);
	assert_true(s.metas[PB_META_CLOCK] >= 2);
	assert_non_null(strstr(text, "patchbay: 2,400,012 calls, 28 lost, 19."));
	assert_int_equal(strchr(text, '\n') - text, strlen(text) - 1);
}

static void status_is_the_programs(void **state)
{
	assert_int_equal(run("chunks=1", "/bin/sh", "-c", "exit 42", NULL), 42);
	assert_int_equal(run("chunks=1", "/bin/sh", "-c", "kill -TERM $$", NULL), 128 + SIGTERM);
	assert_non_null(strstr(text, "killed by SIGTERM"));
}

static void missing_agent_is_reported(void **state)
{
	assert_int_equal(run("quiet", "/bin/true", NULL), 1);
	assert_non_null(strstr(text, "without the agent"));
}

static void agent_error_is_shown(void **state)
{
	assert_int_equal(run("error,chunks=1", "/bin/true", NULL), 1);
	assert_non_null(strstr(text, "set_ftrace_filter:  nothing"));
	assert_int_equal(look().chunks, 1);
}

static void last_error_is_shown(void **state)
{
	assert_int_equal(run("leave", "/bin/true", NULL), 1);
	assert_non_null(strstr(text, "set_ftrace_filter:  nothing"));
}

static void garbage_hurts_nobody(void **state)
{
	assert_int_equal(run("garbage,chunks=2", "/bin/true", NULL) & ~1, 0);
	assert_int_equal(look().chunks, 2);
}

static void max_size_stops_the_file_only(void **state)
{
	assert_int_equal(run("chunks=400", "-b", "1M", "--max-size=2M", "/bin/true", NULL), 0);
	struct seen s = look();
	assert_true(s.end.bytes <= 2 << 20 && s.end.bytes > 1 << 19);
	assert_true(s.end.flags & PB_END_MAX_SIZE);
	/* records that aren't in the file are counted */
	assert_int_equal(s.end.records + s.end.lost, 400 * WORDS_FULL);
	assert_int_equal(s.lost, s.end.lost);
}

static void overwrite_writes_at_the_end(void **state)
{
	assert_int_equal(run("chunks=20,open", "-b", "1M", "--overwrite", "/bin/true", NULL), 0);
	assert_int_equal(look().chunks, 21);
}

static void daemon_is_waited_for(void **state)
{
	/* the daemon fills its chunk after the recorder has reported that the daemon goes on */
	assert_int_equal(run("chunks=1,daemon=1", "/bin/true", NULL), 0);
	assert_non_null(strstr(text, "continues and is recorded"));
	assert_int_equal(look().chunks, 2);
}

/* The chunks of dead threads must become free again, whether they are OPEN or HELD. There are 4
 * chunks, and each process leaves one chunk when it dies. */
static void chunks_of_the_dead_come_back(void **state)
{
	static const char *const ways[] = { "open", "held" };
	static const char *const modes[] = { "-q", "--overwrite" };

	for (int i = 0; i < 4; i++) {
		assert_int_equal(run(ways[i % 2], "-b", "64K", modes[i / 2], "/bin/sh", "-c",
				     "for i in 1 2 3 4 5 6; do /bin/true; done", NULL), 0);
		assert_int_equal(look().chunks, i / 2 ? 4 : 7);
	}
}

static void old_directory_is_kept_once(void **state)
{
	char old[80];

	snprintf(old, sizeof(old), "%s.old", data);
	assert_int_equal(run("chunks=1", "/bin/true", NULL), 0);
	assert_int_equal(run("chunks=2", "/bin/true", NULL), 0);
	assert_int_equal(access(old, F_OK), 0);
	assert_int_equal(look().chunks, 2);
	/* the recorder doesn't move or change a directory that isn't a data directory */
	assert_int_equal(pb_datadir_remove(data), 0);
	assert_int_equal(mkdir(data, 0700), 0);
	strcat(strcpy(old, data), "/precious");
	close(open(old, O_CREAT | O_WRONLY, 0600));
	assert_int_equal(run("chunks=1", "/bin/true", NULL), 1);
	assert_non_null(strstr(text, "is not a Patchbay data directory"));
	assert_int_equal(access(old, F_OK), 0);
	unlink(old);
	rmdir(data);
}

/* --- what is refused ---------------------------------------------------- */

static void copy_with(const char *path, int offset, int byte, mode_t mode)
{
	static char buf[1 << 20];
	int in = open("/bin/true", O_RDONLY), out = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0755);
	ssize_t n = read(in, buf, sizeof(buf));

	if (offset >= 0)
		buf[offset] = (char)byte;
	assert_int_equal(write(out, buf, (size_t)n), n);
	close(in);
	close(out);
	assert_int_equal(chmod(path, mode), 0);
}

static void programs_that_cant_be_traced(void **state)
{
	char prog[64];

	snprintf(prog, sizeof(prog), "%s/prog", dir);
	assert_int_equal(run("", "no-such-program", NULL), 127);
	assert_non_null(strstr(text, "not found in PATH"));
	assert_int_equal(run("", "/etc/passwd", NULL), 126);
	assert_non_null(strstr(text, "isn't executable"));
	assert_int_equal(run("", "/tmp", NULL), 126);
	assert_non_null(strstr(text, "is a directory"));
	copy_with(prog, 4, 1, 0755);
	assert_int_equal(run("", prog, NULL), 126);
	assert_non_null(strstr(text, "32-bit"));
	copy_with(prog, 18, 183, 0755);
	assert_int_equal(run("", prog, NULL), 126);
	assert_non_null(strstr(text, "another machine"));
	copy_with(prog, 56, 1, 0755);		/* e_phnum: only PT_PHDR remains */
	assert_int_equal(run("", prog, NULL), 126);
	assert_non_null(strstr(text, "statically"));
	copy_with(prog, 0, 'x', 0755);
	assert_int_equal(run("", prog, NULL), 126);
	if (!getuid()) {
		copy_with(prog, -1, 0, 0755);
		assert_int_equal(chown(prog, 12345, 12345), 0);
		assert_int_equal(chmod(prog, 04755), 0);
		assert_int_equal(run("", prog, NULL), 126);
		assert_non_null(strstr(text, "setuid"));
	}
	unlink(prog);
}

static void scripts_are_followed(void **state)
{
	static struct record_target t;
	char prog[64];

	snprintf(prog, sizeof(prog), "%s/script", dir);
	int fd = open(prog, O_CREAT | O_WRONLY | O_TRUNC, 0755);
	assert_int_equal(write(fd, "#! /bin/sh -e\n", 14), 14);
	close(fd);
	assert_int_equal(record_target_resolve(&t, prog), 0);
	assert_string_equal(t.exe, "/bin/sh");
	assert_string_equal(t.path, prog);
	fd = open(prog, O_WRONLY | O_TRUNC);
	assert_int_equal(write(fd, "#!/usr/bin/env -S A=1 sh\n", 25), 25);
	close(fd);
	assert_int_equal(record_target_resolve(&t, prog), 0);
	assert_string_equal(strrchr(t.exe, '/'), "/sh");
	unlink(prog);
}

static void bad_options(void **state)
{
	assert_int_equal(run("", "-b", "12x", "/bin/true", NULL), 2);
	assert_int_equal(run("", "-b", "1K", "/bin/true", NULL), 1);
	assert_int_equal(run("", "-b", "999P", "/bin/true", NULL), 2);
	assert_int_equal(run("", "-t", "5 parsecs", "/bin/true", NULL), 2);
	assert_int_equal(run("", "-D", "-1", "/bin/true", NULL), 2);
	assert_int_equal(run("", "--tracer=wakeup", "/bin/true", NULL), 2);
	assert_int_equal(run("", "--overwrite", "--no-loss", "/bin/true", NULL), 2);
	assert_int_equal(run("", NULL), 2);
	assert_int_equal(strchr(text, '\n') - text, strlen(text) - 1);
}

static void sizes(void **state)
{
	uint64_t n;

	assert_int_equal(record_parse_size("64K", &n), 0);
	assert_int_equal(n, 65536);
	assert_int_equal(record_parse_size("2GiB", &n), 0);
	assert_int_equal(n, 2ull << 30);
	assert_int_equal(record_parse_size("0", &n), 0);
	assert_int_equal(record_parse_size("18446744073709551616", &n), -EINVAL);
	assert_int_equal(record_parse_size("18446744073709551615K", &n), -EINVAL);
	assert_int_equal(record_parse_size("", &n), -EINVAL);
	assert_int_equal(record_parse_size("-1", &n), -EINVAL);
	assert_int_equal(record_parse_size("1KK", &n), -EINVAL);
}

static int set_up(void **state)
{
	if (make_dir(state))
		return -1;
	snprintf(data, sizeof(data), "%s/data", dir);
	snprintf(errors, sizeof(errors), "%s/stderr", dir);
	return 0;
}

static int tear_down(void **state)
{
	char old[80];

	snprintf(old, sizeof(old), "%s.old", data);
	pb_datadir_remove(data);
	pb_datadir_remove(old);
	unlink(errors);
	snprintf(old, sizeof(old), "%s/patchbay", dir);
	if (rmdir(old))
		return -1;		/* a session's directory still exists */
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_all_chunks),
		cmocka_unit_test(status_is_the_programs),
		cmocka_unit_test(missing_agent_is_reported),
		cmocka_unit_test(agent_error_is_shown),
		cmocka_unit_test(last_error_is_shown),
		cmocka_unit_test(garbage_hurts_nobody),
		cmocka_unit_test(max_size_stops_the_file_only),
		cmocka_unit_test(overwrite_writes_at_the_end),
		cmocka_unit_test(daemon_is_waited_for),
		cmocka_unit_test(chunks_of_the_dead_come_back),
		cmocka_unit_test(old_directory_is_kept_once),
		cmocka_unit_test(programs_that_cant_be_traced),
		cmocka_unit_test(scripts_are_followed),
		cmocka_unit_test(bad_options),
		cmocka_unit_test(sizes),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
