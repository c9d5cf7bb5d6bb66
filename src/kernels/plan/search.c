/* The one search for a plan: every work tile that the family has, and every way to cut it. */
#include <math.h>
#include <string.h>

#include "rates.h"

enum { STATE_WORDS = 64 }; /* room for any family's state, and for its plan */

const char *lpgemm_i_plan(const lpg_planner *planner, const lpg_problem *problem, const lpg_device *device,
                          lpg_planned *best) {
  int64_t state[STATE_WORDS] = {0}, plan[STATE_WORDS] = {0}; /* zeroed: gaps of structs are kept and compared, too */
  double least = HUGE_VAL;
  int at;
  memset(best, 0, sizeof *best);
  if (planner->begin) planner->begin(planner, problem, device, state);
  for (int i = 0; (at = planner->tile ? planner->tile(problem, device, i, state)
                        : i           ? LPG_NO_MORE
                                      : LPG_CANDIDATE) != LPG_NO_MORE;
       i++) {
    double ns;
    for (int j = 0; at == LPG_CANDIDATE; j++) {
      const int cut = planner->cut(problem, device, j, least, state, plan, &ns);
      if (cut == LPG_NO_MORE) break;
      if (cut == LPG_HOLE || ns >= least || (planner->lay_out && !planner->lay_out(device, state, plan))) continue;
      least = ns;
      memcpy(best->words, plan, (size_t)planner->plan_bytes);
    }
  }
  if (least == HUGE_VAL) return planner->no_plan;
  lpg_launch *launch = &best->launch;
  launch->split_k = launch->multicast = launch->passes = 1;
  launch->mode = -1;
  planner->finish(planner, problem, device, best->words, least, launch);
  if (!launch->gathers) launch->us += lpgemm_i_gather_us(problem, device);
  const int cluster = launch->split_k * launch->multicast;
  if (!launch->at_once) launch->at_once = cluster > 1 ? device->clusters[cluster] : device->sms;
  return NULL;
}
