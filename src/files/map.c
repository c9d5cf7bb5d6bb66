/* Files mapped for reading. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files.h"

static lpgemm_status_t map_descriptor(const char *path, int descriptor, lpg_map *map) {
  struct stat status;
  LPG_CHECK(fstat(descriptor, &status) == 0, LPGEMM_IO_ERROR, "%.300s cannot be read: %s", path, strerror(errno));
  LPG_CHECK(S_ISREG(status.st_mode), LPGEMM_IO_ERROR, "%.300s is neither a file nor a folder; give a checkpoint", path);
  LPG_CHECK(status.st_size > 0, LPGEMM_CORRUPT_DATA, "%.300s has 0 bytes; fetch it again", path);
  LPG_CHECK((uint64_t)status.st_size <= SIZE_MAX / 4, LPGEMM_SIZE_OVERFLOW,
            "%.300s has %lld bytes; it cannot be mapped", path, (long long)status.st_size);
  void *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  LPG_CHECK(bytes != MAP_FAILED, LPGEMM_IO_ERROR, "%.300s cannot be mapped: %s", path, strerror(errno));
  *map = (lpg_map){bytes, (size_t)status.st_size, 1};
  return LPGEMM_SUCCESS;
}

lpgemm_status_t lpgemm_i_map(const char *path, lpg_map *map) {
  /* without O_NONBLOCK a pipe of that name would be waited for */
  int descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  LPG_CHECK(descriptor >= 0, LPGEMM_IO_ERROR, "%.300s cannot be opened: %s", path, strerror(errno));
  lpgemm_status_t status = map_descriptor(path, descriptor, map);
  close(descriptor);
  return status;
}

void lpgemm_i_unmap(lpg_map *map) {
  if (map->mapped) munmap((void *)(uintptr_t)map->bytes, map->size);
  *map = (lpg_map){0};
}

int lpgemm_i_exists(const char *path) {
  struct stat status;
  return stat(path, &status) == 0;
}
