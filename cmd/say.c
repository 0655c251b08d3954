/* Lines on stderr: messages, failures, progress. */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cmd.h"

/* The library's threads and ours speak on the same terminal. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t progress_width; /* of the line that stands there, 0: none */

static void take_progress_away(void)
{
	if (progress_width)
		fprintf(stderr, "\r%*s\r", (int)progress_width, "");
	progress_width = 0;
}

void say(const char *fmt, ...)
{
	char line[2048];
	va_list ap;

	va_start(ap, fmt);
	if (vsnprintf(line, sizeof(line), fmt, ap) < 0)
		line[0] = '\0';
	va_end(ap);
	/* Names in it may come from the target. */
	for (char *p = line; *p; p++) {
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
	}
	pthread_mutex_lock(&lock);
	take_progress_away();
	fprintf(stderr, "rbsample: %s\n", line);
	pthread_mutex_unlock(&lock);
}

void say_progress(const char *text)
{
	pthread_mutex_lock(&lock);
	take_progress_away();
	if (*text) {
		fprintf(stderr, "%s", text);
		progress_width = strlen(text);
	}
	fflush(stderr);
	pthread_mutex_unlock(&lock);
}

bool nobody_reads(const struct rbsp_err *err)
{
	return err->status == RBSP_E_OUTPUT && err->sys_errno == EPIPE;
}

static const char *story(const struct rbsp_err *err)
{
	return err->text[0] ? err->text : rbsp_status_text(err->status);
}

int say_failed(const struct rbsp_err *err)
{
	if (nobody_reads(err))
		return EXIT_DONE;
	say("%s", story(err));
	return exit_status(err->status);
}

int say_attach_failed(int pid, const struct rbsp_err *err)
{
	if (err->status == RBSP_E_OUTPUT) /* a tape's file: nothing is wrong with the process */
		return say_failed(err);
	say("cannot attach to %d: %s", pid, story(err));
	return exit_status(err->status);
}
