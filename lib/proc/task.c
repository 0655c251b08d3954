/* The small files of /proc/PID and /proc/PID/task/TID: stat, status, schedstat, syscall. */
#include "proc/proc.h"

#include "proc/scan.h"

/* Numbers of the fields of /proc/PID/stat, as proc(5) counts them. */
enum { STAT_STATE = 3, STAT_PPID = 4, STAT_FLAGS = 9, STAT_START_TIME = 22, STAT_PROCESSOR = 39 };

enum rbsp_status rbsp_proc_stat_parse(const char *text, size_t n, struct rbsp_proc_stat *out)
{
	const char *open = memchr(text, '(', n);
	const char *close = open ? memrchr(open, ')', n - (size_t)(open - text)) : NULL;
	struct rbsp_scan s;
	size_t len;

	*out = (struct rbsp_proc_stat){ 0 };
	if (!close)
		return RBSP_E_FORMAT;
	len = (size_t)(close - open - 1);
	if (len >= sizeof(out->comm))
		len = sizeof(out->comm) - 1;
	memcpy(out->comm, open + 1, len);
	s = (struct rbsp_scan){ close + 1, text + n };
	if (!rbsp_scan_char(&s, ' ') || s.p >= s.end)
		return RBSP_E_FORMAT;
	out->state = *s.p++;
	for (int field = STAT_PPID; field <= STAT_PROCESSOR; field++) {
		bool ok;

		if (!rbsp_scan_char(&s, ' '))
			return RBSP_E_FORMAT;
		switch (field) {
		case STAT_PPID:
			ok = rbsp_scan_int(&s, &out->ppid);
			break;
		case STAT_FLAGS:
			ok = rbsp_scan_u64(&s, 10, &out->flags);
			break;
		case STAT_START_TIME:
			ok = rbsp_scan_u64(&s, 10, &out->start_time);
			break;
		case STAT_PROCESSOR:
			ok = rbsp_scan_int(&s, &out->cpu);
			break;
		default:
			ok = rbsp_scan_word(&s);
		}
		if (!ok)
			return RBSP_E_FORMAT;
	}
	return RBSP_OK;
}

/* The fields of /proc/PID/status that are read, as bits of what was seen. */
enum {
	SEEN_STATE = 1,
	SEEN_TGID = 2,
	SEEN_TRACER = 4,
	SEEN_UID = 8,
	SEEN_GID = 16,
	SEEN_CAP_PRM = 32,
	SEEN_CAP_EFF = 64,
	SEEN_NS_PID = 128,
	SEEN_NEEDED = 127, /* NSpid is absent in kernels without pid namespaces */
};

static bool scan_ids(struct rbsp_scan *s, uint32_t id[4])
{
	for (int i = 0; i < 4; i++) {
		uint64_t value;

		rbsp_scan_blanks(s);
		if (!rbsp_scan_u64(s, 10, &value) || value > UINT32_MAX)
			return false;
		id[i] = (uint32_t)value;
	}
	return true;
}

static bool scan_last_int(struct rbsp_scan *s, int *out)
{
	if (!rbsp_scan_int(s, out))
		return false;
	for (;;) {
		rbsp_scan_blanks(s);
		if (s->p >= s->end)
			return true;
		if (!rbsp_scan_int(s, out))
			return false;
	}
}

static const struct {
	const char *key;
	unsigned seen;
} status_keys[] = {
	{ "State:", SEEN_STATE },    { "Tgid:", SEEN_TGID },    { "TracerPid:", SEEN_TRACER },
	{ "Uid:", SEEN_UID },        { "Gid:", SEEN_GID },      { "CapPrm:", SEEN_CAP_PRM },
	{ "CapEff:", SEEN_CAP_EFF }, { "NSpid:", SEEN_NS_PID },
};

/* Take a key that is read, and the blanks behind it. @return its bit; 0: another line */
static unsigned scan_key(struct rbsp_scan *s)
{
	for (size_t i = 0; i < RBSP_COUNT_OF(status_keys); i++) {
		size_t len = strlen(status_keys[i].key);

		if ((size_t)(s->end - s->p) >= len && memcmp(s->p, status_keys[i].key, len) == 0) {
			s->p += len;
			rbsp_scan_blanks(s);
			return status_keys[i].seen;
		}
	}
	return 0;
}

static bool scan_value(struct rbsp_scan *s, unsigned key, struct rbsp_proc_status *out)
{
	switch (key) {
	case SEEN_STATE:
		if (s->p >= s->end)
			return false;
		out->state = *s->p;
		return true;
	case SEEN_TGID:
		return rbsp_scan_int(s, &out->tgid);
	case SEEN_TRACER:
		return rbsp_scan_int(s, &out->tracer_pid);
	case SEEN_UID:
		return scan_ids(s, out->uid);
	case SEEN_GID:
		return scan_ids(s, out->gid);
	case SEEN_CAP_PRM:
		return rbsp_scan_u64(s, 16, &out->cap_prm);
	case SEEN_CAP_EFF:
		return rbsp_scan_u64(s, 16, &out->cap_eff);
	case SEEN_NS_PID:
		return scan_last_int(s, &out->ns_pid);
	default:
		return true;
	}
}

enum rbsp_status rbsp_proc_status_parse(const char *text, size_t n, struct rbsp_proc_status *out)
{
	struct rbsp_scan rest = { text, text + n }, line;
	unsigned seen = 0;

	*out = (struct rbsp_proc_status){ 0 };
	while (rbsp_scan_line(&rest, &line)) {
		unsigned key = scan_key(&line);

		if (!scan_value(&line, key, out))
			return RBSP_E_FORMAT;
		seen |= key;
	}
	if ((seen & SEEN_NEEDED) != SEEN_NEEDED)
		return RBSP_E_FORMAT;
	if (!(seen & SEEN_NS_PID))
		out->ns_pid = out->tgid;
	return RBSP_OK;
}

enum rbsp_status rbsp_schedstat_parse(const char *text, size_t n, struct rbsp_schedstat *out)
{
	struct rbsp_scan s = { text, text + n };

	*out = (struct rbsp_schedstat){ 0 };
	if (!rbsp_scan_u64(&s, 10, &out->run_ns) || !rbsp_scan_char(&s, ' ') ||
	    !rbsp_scan_u64(&s, 10, &out->wait_ns) || !rbsp_scan_char(&s, ' ') ||
	    !rbsp_scan_u64(&s, 10, &out->count))
		return RBSP_E_FORMAT;
	return RBSP_OK;
}

enum rbsp_status rbsp_exec_start_parse(const char *text, size_t n, uint64_t *ns)
{
	static const char key[] =
		"\nse.exec_start"; /* at a line's start: a task may have any name */
	const char *at = memmem(text, n, key, sizeof(key) - 1);
	struct rbsp_scan s = { at, text + n };
	uint64_t ms, rest;

	if (!at)
		return RBSP_E_FORMAT;
	s.p += sizeof(key) - 1;
	rbsp_scan_blanks(&s);
	rbsp_scan_char(&s, ':');
	rbsp_scan_blanks(&s);
	/* the kernel prints six digits behind the dot: SPLIT_NS in kernel/sched/debug.c */
	if (!rbsp_scan_u64(&s, 10, &ms) || !rbsp_scan_char(&s, '.') ||
	    !rbsp_scan_u64(&s, 10, &rest))
		return RBSP_E_FORMAT;
	*ns = ms * 1000000 + rest;
	return RBSP_OK;
}

static bool scan_hex_word(struct rbsp_scan *s, uint64_t *out)
{
	return rbsp_scan_char(s, ' ') && rbsp_scan_char(s, '0') && rbsp_scan_char(s, 'x') &&
	       rbsp_scan_u64(s, 16, out);
}

enum rbsp_status rbsp_proc_syscall_parse(const char *text, size_t n, struct rbsp_proc_syscall *out)
{
	static const char running[] = "running";
	struct rbsp_scan s = { text, text + n };

	*out = (struct rbsp_proc_syscall){ .nr = -1 };
	if (n >= sizeof(running) - 1 && memcmp(text, running, sizeof(running) - 1) == 0)
		return RBSP_OK;
	if (!rbsp_scan_i64(&s, &out->nr))
		return RBSP_E_FORMAT;
	if (out->nr >= 0) {
		for (size_t i = 0; i < RBSP_COUNT_OF(out->arg); i++) {
			if (!scan_hex_word(&s, &out->arg[i]))
				return RBSP_E_FORMAT;
		}
	}
	if (!scan_hex_word(&s, &out->sp) || !scan_hex_word(&s, &out->pc))
		return RBSP_E_FORMAT;
	out->blocked = true;
	return RBSP_OK;
}
