/* The ELF images of a live process: opened once, from the file that is really mapped, or from
 * memory. */
#ifndef RBSP_IMAGES_H
#define RBSP_IMAGES_H

#include "target/target.h"

/** Zero-initialised is empty. */
struct rbsp_images {
	struct rbsp_image_entry *entry;
	size_t n, cap;
};
void rbsp_images_fini(struct rbsp_images *im);

/**
 * The image of a mapping. Opened through /proc/PID/map_files, then /proc/PID/root and the plain
 * path where device and inode or, failing that, the build-id in memory agree, else rebuilt from
 * memory: never another file of the same name. A failure is remembered too.
 *
 * @param dir  descriptor of /proc/PID
 * @param out  borrowed from @p im
 */
enum rbsp_status rbsp_images_get(struct rbsp_images *im, struct rbsp_target *t, int dir,
				 const struct rbsp_map *m, const struct rbsp_elf **out,
				 struct rbsp_err *err);

#endif
