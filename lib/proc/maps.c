/* /proc/PID/maps to a sorted table of mappings. */
#include "proc/proc.h"

#include <stdlib.h>
#include <sys/sysmacros.h>

#include "proc/scan.h"

void rbsp_maps_fini(struct rbsp_maps *m)
{
	if (!m)
		return;
	free(m->map);
	free(m->text);
	*m = (struct rbsp_maps){ 0 };
}

static bool scan_flag(struct rbsp_scan *s, char set, char unset, bool *out)
{
	*out = rbsp_scan_char(s, set);
	return *out || rbsp_scan_char(s, unset);
}

/* The kernel escapes a newline in a path, as \012, and nothing else (fs/proc/task_mmu.c). */
static char *unescape(char *path, const char *end)
{
	char *to = path;

	for (const char *p = path; p < end; p++) {
		if (end - p >= 4 && memcmp(p, "\\012", 4) == 0) {
			*to++ = '\n';
			p += 3;
		} else {
			*to++ = *p;
		}
	}
	return to;
}

/* "start-end rwxp offset major:minor inode   path" */
static bool parse_line(struct rbsp_scan s, struct rbsp_map *m)
{
	uint64_t major, minor;

	if (!rbsp_scan_u64(&s, 16, &m->start) || !rbsp_scan_char(&s, '-') ||
	    !rbsp_scan_u64(&s, 16, &m->end) || !rbsp_scan_char(&s, ' '))
		return false;
	if (!scan_flag(&s, 'r', '-', &m->read) || !scan_flag(&s, 'w', '-', &m->write) ||
	    !scan_flag(&s, 'x', '-', &m->exec) || !scan_flag(&s, 's', 'p', &m->shared) ||
	    !rbsp_scan_char(&s, ' '))
		return false;
	if (!rbsp_scan_u64(&s, 16, &m->offset) || !rbsp_scan_char(&s, ' ') ||
	    !rbsp_scan_u64(&s, 16, &major) || !rbsp_scan_char(&s, ':') ||
	    !rbsp_scan_u64(&s, 16, &minor) || !rbsp_scan_char(&s, ' ') ||
	    !rbsp_scan_u64(&s, 10, &m->ino))
		return false;
	if (major > UINT32_MAX || minor > UINT32_MAX || m->start >= m->end)
		return false;
	m->dev = makedev((unsigned)major, (unsigned)minor);
	if (s.p < s.end && *s.p != ' ')
		return false;
	rbsp_scan_blanks(&s);
	m->path = s.p; /* up to the end of the line; terminated by the caller */
	return true;
}

static size_t count_lines(const char *text, size_t n)
{
	size_t lines = 1;

	for (size_t i = 0; i < n; i++)
		lines += text[i] == '\n';
	return lines;
}

enum rbsp_status rbsp_maps_parse(const char *text, size_t n, struct rbsp_maps *out,
				 struct rbsp_err *err)
{
	struct rbsp_maps m = { 0 };
	enum rbsp_status st = RBSP_OK;
	struct rbsp_scan rest, line;

	*out = m;
	m.map = calloc(count_lines(text, n), sizeof(*m.map));
	m.text = malloc(n + 1);
	if (!m.map || !m.text) {
		st = rbsp_fail(err, RBSP_E_NOMEM, "no memory for the list of mappings");
		goto out;
	}
	if (n)
		memcpy(m.text, text, n);
	m.text[n] = '\0';
	rest = (struct rbsp_scan){ m.text, m.text + n };
	while (rbsp_scan_line(&rest, &line)) {
		struct rbsp_map *map = &m.map[m.n];
		char *path;

		if (!parse_line(line, map) || (m.n > 0 && map->start < map[-1].end)) {
			st = rbsp_fail(
				err, RBSP_E_FORMAT,
				"line %zu of the list of mappings is malformed: %.*s", m.n + 1,
				(int)(line.end - line.p < 80 ? line.end - line.p : 80), line.p);
			goto out;
		}
		path = m.text + (map->path - m.text);
		*unescape(path, line.end) = '\0';
		m.n++;
	}
	*out = m;
	m = (struct rbsp_maps){ 0 };
out:
	rbsp_maps_fini(&m);
	return st;
}

const struct rbsp_map *rbsp_maps_find(const struct rbsp_maps *m, rbsp_addr a)
{
	size_t low = 0, high = m->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (a >= m->map[mid].end)
			low = mid + 1;
		else
			high = mid;
	}
	return low < m->n && m->map[low].start <= a ? &m->map[low] : NULL;
}

static bool alike(const struct rbsp_map *a, const struct rbsp_map *b)
{
	return a->read == b->read && a->write == b->write && a->exec == b->exec &&
	       a->shared == b->shared && a->dev == b->dev && a->ino == b->ino;
}

bool rbsp_maps_one_area(const struct rbsp_maps *m, rbsp_addr a, uint64_t n)
{
	const struct rbsp_map *first = rbsp_maps_find(m, a), *last = first;
	rbsp_addr end;

	if (!first || !first->read || __builtin_add_overflow(a, n, &end))
		return false;
	while (last->end < end) {
		const struct rbsp_map *next = last + 1;

		if (next == m->map + m->n || next->start != last->end || !alike(first, next))
			return false;
		last = next;
	}
	return true;
}
