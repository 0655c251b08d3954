/* The table of exit statuses. */
#include <assert.h>
#include <stddef.h>

#include "cmd.h"

static const unsigned char exit_of[] = {
	[RBSP_OK] = EXIT_DONE,         [RBSP_E_SYS] = EXIT_OTHER,  [RBSP_E_NOMEM] = EXIT_OTHER,
	[RBSP_E_USAGE] = EXIT_USAGE,   [RBSP_E_GONE] = 66,         [RBSP_E_FAULT] = EXIT_OTHER,
	[RBSP_E_RANGE] = EXIT_OTHER,   [RBSP_E_TORN] = EXIT_OTHER, [RBSP_E_DEADLINE] = EXIT_OTHER,
	[RBSP_E_TRACED] = 77,          [RBSP_E_FULL] = EXIT_OTHER, [RBSP_E_NOT_FOUND] = 69,
	[RBSP_E_NO_PID] = 66,          [RBSP_E_DENIED] = 77,       [RBSP_E_NOT_RUBY] = 69,
	[RBSP_E_BOOTING] = 69,         [RBSP_E_LAYOUT] = 69,       [RBSP_E_FORMAT] = EXIT_OTHER,
	[RBSP_E_OUTPUT] = EXIT_OUTPUT, [RBSP_E_TAPE] = EXIT_OTHER,
};

enum {
#define X(name, next, text) count_of_##name,
	RBSP_STATUS_MAP(X)
#undef X
		COUNT_OF_STATUSES
};
static_assert(sizeof(exit_of) == COUNT_OF_STATUSES, "every status has an exit status");

int exit_status(enum rbsp_status st)
{
	return (size_t)st < sizeof(exit_of) ? exit_of[st] : EXIT_OTHER;
}
