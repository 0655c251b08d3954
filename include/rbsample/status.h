/* What a call of librbsample can end with, and the story of a failure. */
#ifndef RBSAMPLE_STATUS_H
#define RBSAMPLE_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

/**
 * One row a status: its name, what the sampler does when one sample ends with it, its text.
 * The exit status that the command line gives for it is a table of cmd/.
 */
#define RBSP_STATUS_MAP(X)                                                  \
	X(OK, GO_ON, "success")                                             \
	X(E_SYS, DROP_SAMPLE, "a system call failed")                       \
	X(E_NOMEM, GIVE_UP, "out of memory")                                \
	X(E_USAGE, GIVE_UP, "an argument is not valid")                     \
	X(E_GONE, DROP_THREAD, "the thread or process exited")              \
	X(E_FAULT, DROP_SAMPLE, "target memory is unreadable")              \
	X(E_RANGE, DROP_SAMPLE, "a pointer leaves its area")                \
	X(E_TORN, DROP_SAMPLE, "the state read is inconsistent")            \
	X(E_DEADLINE, DROP_SAMPLE, "the thread did not stop in time")       \
	X(E_TRACED, DROP_SAMPLE, "the thread is traced by another process") \
	X(E_FULL, DROP_SAMPLE, "the decoder is behind")                     \
	X(E_NOT_FOUND, DROP_SAMPLE, "nothing was found")                    \
	X(E_NO_PID, GIVE_UP, "no such process")                             \
	X(E_DENIED, GIVE_UP, "permission denied")                           \
	X(E_NOT_RUBY, GIVE_UP, "no Ruby runtime in the target")             \
	X(E_BOOTING, GIVE_UP, "the Ruby runtime is not ready")              \
	X(E_LAYOUT, GIVE_UP, "the memory layout of this Ruby is not known") \
	X(E_FORMAT, GIVE_UP, "a file is malformed")                         \
	X(E_OUTPUT, GIVE_UP, "the output cannot be written")                \
	X(E_TAPE, GIVE_UP, "a tape lacks what is read: record it again with scripts/tapes")

enum rbsp_status {
#define X(name, next, text) RBSP_##name,
	RBSP_STATUS_MAP(X)
#undef X
};

/** What the sampler does after a sample ended with a status. */
enum rbsp_next { RBSP_NEXT_GO_ON, RBSP_NEXT_DROP_SAMPLE, RBSP_NEXT_DROP_THREAD, RBSP_NEXT_GIVE_UP };

/** A failure, filled once, where it is known: what, why, and where it can be said what to do. One
 * line, no newline. */
struct rbsp_err {
	enum rbsp_status status;
	int sys_errno; /* errno at the failure, 0 if none */
	char text[512];
};

/** The text of a status, never NULL. */
const char *rbsp_status_text(enum rbsp_status st);
/** What the sampler does next, see RBSP_STATUS_MAP. */
enum rbsp_next rbsp_status_next(enum rbsp_status st);

#ifdef __cplusplus
}
#endif
#endif
