#include "measured.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_BYTES = 512, PATH_BYTES = 1024 };
#define DEVICE "# device "

/* "... m kernel us\n": the last three columns of a line. */
static int read_line(char *line, cli_measured *entry) {
  char *column[3] = {NULL, NULL, NULL};
  for (char *word = strtok(line, " \n"); word; word = strtok(NULL, " \n")) {
    column[0] = column[1];
    column[1] = column[2];
    column[2] = word;
  }
  if (!column[0]) return 0;
  entry->m = strtoll(column[0], NULL, 10);
  snprintf(entry->kernel, sizeof entry->kernel, "%s", column[1]);
  entry->us = strtod(column[2], NULL);
  return 1;
}

static void read_file(FILE *file, char device[CLI_DEVICE_BYTES], cli_measured *list, size_t count) {
  char line[LINE_BYTES];
  cli_measured entry;
  while (fgets(line, sizeof line, file)) {
    if (strncmp(line, DEVICE, strlen(DEVICE)) == 0) {
      line[strcspn(line, "\n")] = 0;
      snprintf(device, CLI_DEVICE_BYTES, "%.*s", CLI_DEVICE_BYTES - 1, line + strlen(DEVICE));
    }
    if (line[0] == '#' || !read_line(line, &entry)) continue;
    for (size_t i = 0; i < count; i++) {
      if (list[i].m == entry.m) list[i] = entry;
    }
  }
}

void cli_read_measured(lpgemm_handle_t handle, char device[CLI_DEVICE_BYTES], cli_measured *list, size_t count,
                       lpgemm_handle_t other) {
  const char *folder = getenv("TMPDIR");
  char path[PATH_BYTES];
  snprintf(path, sizeof path, "%s/lpgemm-XXXXXX", folder && *folder ? folder : "/tmp");
  int descriptor = mkstemp(path);
  if (descriptor < 0) cli_fail("no temporary file %s: %s; TMPDIR names the folder", path, strerror(errno));
  close(descriptor);
  device[0] = 0;
  lpgemm_status_t status = lpgemm_tuning_save(handle, path);
  if (status == LPGEMM_SUCCESS && other) status = lpgemm_tuning_load(other, path, NULL, NULL);
  FILE *file = status == LPGEMM_SUCCESS ? fopen(path, "r") : NULL;
  if (file) {
    read_file(file, device, list, count);
    fclose(file);
  }
  unlink(path);
  cli_check(status);
  if (!file) cli_fail("%s cannot be read", path);
}
