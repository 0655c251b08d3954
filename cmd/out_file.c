/* Where a profile goes. */
#include "out_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static enum rbsp_status fail(struct rbsp_err *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* errno is appended. */
static enum rbsp_status fail(struct rbsp_err *err, const char *fmt, ...)
{
	int saved = errno;
	char what[sizeof(err->text) - 80];
	va_list ap;

	va_start(ap, fmt);
	if (vsnprintf(what, sizeof(what), fmt, ap) < 0)
		what[0] = '\0';
	va_end(ap);
	err->status = RBSP_E_OUTPUT;
	err->sys_errno = saved;
	snprintf(err->text, sizeof(err->text), "%s: %.70s", what, strerror(saved));
	return RBSP_E_OUTPUT;
}

static enum rbsp_status open_stdout(struct out_file *o, struct rbsp_err *err)
{
	int flags = fcntl(STDOUT_FILENO, F_GETFL);

	if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY) {
		errno = EBADF;
		return fail(err, "cannot write to stdout");
	}
	o->f = stdout;
	o->is_stdout = true;
	return RBSP_OK;
}

static enum rbsp_status adopt(struct out_file *o, int fd, struct rbsp_err *err)
{
	o->f = fdopen(fd, "w");
	if (o->f)
		return RBSP_OK;
	fail(err, "cannot open %s", o->path);
	close(fd);
	if (o->ours)
		unlink(o->path);
	return RBSP_E_OUTPUT;
}

enum rbsp_status out_file_open(struct out_file *o, const char *path, struct rbsp_err *err)
{
	int fd;

	*o = (struct out_file){ 0 };
	if (strcmp(path, "-") == 0)
		return open_stdout(o, err);
	if (strlen(path) >= sizeof(o->path)) {
		errno = ENAMETOOLONG;
		return fail(err, "cannot open the output");
	}
	strcpy(o->path, path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	o->ours = fd >= 0;
	if (fd < 0 && errno == EEXIST)
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);
	if (fd < 0)
		return fail(err, "cannot open %s", path);
	return adopt(o, fd, err);
}

enum rbsp_status out_file_make(struct out_file *o, int pid, const char *suffix,
			       struct rbsp_err *err)
{
	time_t now = time(NULL);
	char stamp[32] = "";
	struct tm tm;
	int fd = -1;

	*o = (struct out_file){ .named = true };
	if (localtime_r(&now, &tm))
		strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%S", &tm);
	for (int i = 0; fd < 0 && i < 1000; i++) {
		char more[16] = "";

		if (i)
			snprintf(more, sizeof(more), "-%d", i);
		snprintf(o->path, sizeof(o->path), "rbsample-%d-%s%s%s", pid, stamp, more, suffix);
		fd = open(o->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (fd < 0 && errno != EEXIST)
			break;
	}
	if (fd < 0)
		return fail(err, "cannot make %s here (-o names another file)", o->path);
	o->ours = true;
	return adopt(o, fd, err);
}

enum rbsp_status out_file_begin(struct out_file *o, struct rbsp_err *err)
{
	struct stat st;

	if (o->is_stdout || fstat(fileno(o->f), &st) != 0 || !S_ISREG(st.st_mode))
		return RBSP_OK;
	if (ftruncate(fileno(o->f), 0) != 0)
		return fail(err, "cannot write %s", o->path);
	return RBSP_OK;
}

enum rbsp_status out_file_close(struct out_file *o, struct rbsp_err *err)
{
	FILE *f = o->f;
	int failed;

	o->f = NULL;
	if (!f)
		return RBSP_OK;
	failed = o->is_stdout ? fflush(f) : fclose(f);
	return failed ? fail(err, "cannot write %s", o->is_stdout ? "to stdout" : o->path)
		      : RBSP_OK;
}

void out_file_drop(struct out_file *o)
{
	if (!o->f)
		return;
	if (!o->is_stdout)
		fclose(o->f);
	o->f = NULL;
	if (o->ours)
		unlink(o->path);
}
