/* `rbsample record`: a run from the first open to the last line. */
#include "record.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "child.h"
#include "cmd.h"
#include "out_file.h"
#include "stop.h"
#include "summary.h"

#define HOT_ROWS 10

/* How often and how fast a command is asked whether it is a Ruby by now; then slower. */
#define BOOT_TRIES 300
#define BOOT_WAIT_NS 2000000L

struct run {
	struct record *r;
	struct child child; /* pid 0: none */
	struct out_file out;
	bool hot; /* print the table of the hottest frames */
	struct rbsp_frames *frames;
	struct rbsp_sampler *sampler;
	struct rbsp_sink *sink;
	struct rbsp_sampler_stats stats;
};

/* Where the profile goes, and in which format. */
static enum rbsp_status open_output(struct run *run, struct rbsp_err *err)
{
	struct record *r = run->r;
	bool on_terminal = isatty(STDOUT_FILENO);

	if (!r->format && r->output)
		r->format = rbsp_format_of_file(r->output);
	if (!r->format)
		r->format = &rbsp_formats[0];
	if (r->output)
		return out_file_open(&run->out, r->output, err);
	if (!run->child.pid && !on_terminal)
		return out_file_open(&run->out, "-", err);
	run->hot = !run->child.pid && on_terminal;
	return out_file_make(&run->out, run->child.pid ? run->child.pid : r->target.pid[0],
			     r->format->suffix, err);
}

static enum rbsp_status open_sinks(struct run *run, struct rbsp_err *err)
{
	struct rbsp_output_options o = stack_opts_output(&run->r->stack), methods;
	struct rbsp_sink *hot;
	enum rbsp_status st;

	o.threads = run->r->threads;
	o.processes = run->r->target.n > 1;
	st = run->r->format->open(run->out.f, &o, run->frames, &run->sink, err);
	if (st != RBSP_OK || !run->hot)
		return st;
	methods = o;
	methods.lines = methods.threads = methods.processes = false;
	st = rbsp_hot_open(run->sink, &methods, run->frames, &hot, err);
	if (st == RBSP_OK)
		run->sink = hot;
	return st;
}

static enum rbsp_status prepare(struct run *run, struct rbsp_err *err)
{
	enum rbsp_status st = open_output(run, err);

	if (st != RBSP_OK)
		return st;
	run->frames = rbsp_frames_new();
	if (!run->frames) {
		err->status = RBSP_E_NOMEM;
		return RBSP_E_NOMEM;
	}
	st = rbsp_sampler_new(&run->r->sampler, run->frames, &run->sampler, err);
	if (st == RBSP_OK)
		st = open_sinks(run, err);
	if (st == RBSP_OK)
		stop_on_signals(run->sampler, run->child.pid);
	return st;
}

/* Returns how many there are to sample; *status is the first failure's. */
static size_t attach_all(struct run *run, int *status)
{
	size_t n = 0;

	for (size_t i = 0; i < run->r->target.n; i++) {
		struct rbsp_err err = { 0 };

		if (rbsp_sampler_add(run->sampler, run->r->target.pid[i], &err) == RBSP_OK) {
			n++;
			continue;
		}
		int failed = say_attach_failed(run->r->target.pid[i], &err);

		if (!*status)
			*status = failed;
	}
	return n;
}

static bool is_gone(enum rbsp_status st)
{
	return st == RBSP_E_GONE || st == RBSP_E_NO_PID;
}

/*
 * Whether the command may be a Ruby that can be sampled soon. What is read while it execs or boots
 * may be anything: a layout is refused only if it is still wrong after that.
 */
static bool may_become_ruby(enum rbsp_status st, unsigned tries)
{
	if (st == RBSP_E_BOOTING || st == RBSP_E_NOT_RUBY)
		return true;
	return tries < BOOT_TRIES && (is_gone(st) || st == RBSP_E_LAYOUT ||
				      rbsp_status_next(st) == RBSP_NEXT_DROP_SAMPLE);
}

/* Attach to the command as soon as it is a Ruby. Says why if it never is. */
static bool attach_command(struct run *run)
{
	struct timespec wait = { .tv_nsec = BOOT_WAIT_NS };
	struct rbsp_err last = { .text = "it was too short" };

	for (unsigned tries = 0; child_lives(&run->child); tries++) {
		struct rbsp_err err = { 0 };

		if (rbsp_sampler_add(run->sampler, run->child.pid, &err) == RBSP_OK)
			return true;
		if (!may_become_ruby(err.status, tries)) {
			say_attach_failed(run->child.pid, &err);
			return false;
		}
		if (!is_gone(err.status))
			last = err;
		/* A shell may exec a Ruby at any time: go on, at ever longer waits. */
		if (tries >= BOOT_TRIES && wait.tv_nsec < 20 * BOOT_WAIT_NS)
			wait.tv_nsec += BOOT_WAIT_NS / 4;
		nanosleep(&wait, NULL);
	}
	say("no samples: the command ended before it was a Ruby that could be sampled: %s",
	    last.text);
	return false;
}

static enum rbsp_status sample(struct run *run, struct rbsp_err *err)
{
	bool progress = run->r->target.verbose >= 0 && isatty(STDERR_FILENO);
	struct watch *w =
		watch_start(run->sampler, run->out.is_stdout ? STDOUT_FILENO : -1, progress);
	enum rbsp_status st = RBSP_OK;

	if (!stop_asked())
		st = rbsp_sampler_run(run->sampler, run->r->duration_ns, run->r->count, run->sink,
				      err);
	watch_end(w);
	rbsp_sampler_stats(run->sampler, &run->stats);
	return st;
}

/* Write the profile; the samples there are, also after a failure. */
static enum rbsp_status write_profile(struct run *run, struct rbsp_err *err)
{
	enum rbsp_status st = out_file_begin(&run->out, err);

	if (st == RBSP_OK)
		st = rbsp_sink_finish(run->sink, err);
	if (st == RBSP_OK)
		st = out_file_close(&run->out, err);
	if (st != RBSP_OK)
		return st;
	if (run->hot)
		rbsp_hot_print(run->sink, stdout, HOT_ROWS,
			       stack_opts_color(&run->r->stack, stdout));
	if (run->hot)
		fflush(stdout);
	if (run->out.named)
		say("the profile is in %s", run->out.path);
	return RBSP_OK;
}

static int say_no_samples(const struct run *run)
{
	if (run->stats.due)
		say("no samples: all of %" PRIu64 " that were due came late or were lost",
		    run->stats.due);
	else
		say("no samples: no thread ran%s",
		    run->r->sampler.idle ? "" : " (-i counts those that wait too)");
	return EXIT_OTHER;
}

/* Everything between the attachment and the last line. */
static int sample_and_write(struct run *run)
{
	struct rbsp_err err = { 0 };
	int status = EXIT_DONE;

	if (sample(run, &err) != RBSP_OK)
		status = say_failed(&err);
	if (run->stats.samples || !run->out.named) {
		err = (struct rbsp_err){ 0 };
		if (write_profile(run, &err) != RBSP_OK) {
			int failed = say_failed(&err);

			status = status ? status : failed;
		}
		run->out.ours = false; /* what was written stays */
	}
	stop_forget();
	rbsp_sampler_free(run->sampler);
	run->sampler = NULL;
	if (!run->stats.samples && !status && !stop_unread())
		status = say_no_samples(run);
	if (run->r->target.verbose > 0)
		summary_print_more(&run->stats);
	if (run->r->target.verbose >= 0)
		summary_print(&run->stats);
	return status;
}

/* The command's own status wins; ours counts where it ended well and its profile is lost. */
static int end_command(struct run *run, int status)
{
	int its = child_wait(&run->child);

	return its ? its : status == EXIT_OUTPUT ? EXIT_OUTPUT : EXIT_DONE;
}

static int run_command(struct run *run)
{
	int failed = child_exec(&run->child);
	int status = EXIT_DONE;

	if (failed == ECHILD)
		return child_wait(&run->child);
	if (failed) {
		say("cannot run %s: %s", run->r->command[0], strerror(failed));
		return failed == ENOENT ? 127 : 126;
	}
	if (attach_command(run))
		status = sample_and_write(run);
	return end_command(run, status);
}

int record_run(struct record *r)
{
	struct run run = { .r = r };
	struct rbsp_err err = { 0 };
	int status = EXIT_DONE;

	if (r->command && !child_fork(&run.child, r->command)) {
		say("cannot start a process: %s", strerror(errno));
		return EXIT_OTHER;
	}
	if (prepare(&run, &err) != RBSP_OK) {
		status = say_failed(&err);
		child_drop(&run.child);
	} else if (r->command) {
		status = run_command(&run);
	} else if (attach_all(&run, &status)) {
		status = sample_and_write(&run);
	}
	out_file_drop(&run.out);
	stop_forget();
	rbsp_sink_free(run.sink);
	rbsp_sampler_free(run.sampler);
	rbsp_frames_free(run.frames);
	return status;
}
