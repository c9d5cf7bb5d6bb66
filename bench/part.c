#include "part.h"

#include <stdio.h>
#include <string.h>

bench_error bench_read_part(const char *text, bench_part *part) {
  char after;
  *part = (bench_part){1, 1};
  if (!text) return NULL;
  BENCH_CHECK(sscanf(text, "%d/%d%c", &part->number, &part->parts, &after) == 2 && part->number >= 1 &&
                  part->number <= part->parts,
              "the part '%s' is not I/N with I from 1 to N", text);
  return NULL;
}

bench_error bench_skip_recorded(const char *path, const bench_case *cases, int count, char *skip) {
  char line[4096], name[sizeof cases->name];
  if (!path) return NULL;
  FILE *file = fopen(path, "r");
  BENCH_CHECK(file, "cannot open %s", path);
  while (fgets(line, sizeof line, file)) { /* as record.c writes it */
    if (sscanf(line, " {\"name\": \"%159[^\"]\"", name) != 1) continue;
    for (int i = 0; i < count; i++) skip[i] |= strcmp(cases[i].name, name) == 0;
  }
  fclose(file);
  return NULL;
}
