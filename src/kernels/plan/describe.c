/* A plan in words, for explain, the log and lpgemm-info. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "../../internal.h"

static void add(char *text, size_t bytes, const char *format, ...) LPG_PRINTF(3, 4);

static void add(char *text, size_t bytes, const char *format, ...) {
  const size_t used = strlen(text);
  va_list args;
  va_start(args, format);
  vsnprintf(text + used, bytes - used, format, args);
  va_end(args);
}

void lpgemm_i_describe_plan(const lpg_planner *planner, const lpg_launch *l, char *text, size_t bytes) {
  const int cluster = l->split_k * l->multicast;
  *text = 0;
  if (l->clusters == 0) {
    add(text, bytes, "%d thread%s", l->threads, l->threads == 1 ? "" : "s");
    return;
  }
  add(text, bytes, "work tile %d x %d", l->tile_n, l->tile_m);
  if (l->split_k > 1) add(text, bytes, ", split-K %d", l->split_k);
  if (l->multicast > 1) add(text, bytes, ", multicast %d", l->multicast);
  if (cluster > 1) {
    add(text, bytes, ", %d clusters of %d", l->clusters, cluster);
  } else {
    add(text, bytes, ", %d CTAs", l->clusters);
  }
  if (l->at_once > 0) add(text, bytes, " (%.2f waves)", (double)l->work_tiles / l->at_once);
  if (l->passes > 1) add(text, bytes, ", %d passes", l->passes);
  if (l->streams) add(text, bytes, ", stream-K");
  if (l->gathers) add(text, bytes, ", gathers X");
  if (l->stages > 0) add(text, bytes, ", %d stages", l->stages);
  add(text, bytes, ", %d warps", l->threads / 32);
  if (l->shared_bytes > 0) add(text, bytes, ", %d KB", (l->shared_bytes + 1023) / 1024);
  if (l->mode >= 0) add(text, bytes, ", scales %s", planner->modes[l->mode]);
}
