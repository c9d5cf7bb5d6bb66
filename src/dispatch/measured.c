/* The measured tables: the nearest points to a problem, and what they say of an estimate. */
#include "measured.h"

#include <math.h>
#include <stdlib.h>

#include "kinds.h"

/* ---- distance ---- */

/* What decides which code of a kernel runs, beside the sizes. */
typedef struct features {
  int x_sort, x_bits; /* 16 bits, 8 bits, codes, fp32 */
  lpgemm_dtype_t x_type;
  int decoder, bits; /* integers, floats, codebooks */
  lpgemm_dtype_t type;
  int64_t group;
  int groups;       /* 16; up to 64; more */
  int zeros;        /* none that differ, integers, reals, minima */
  int other_scales; /* of another type than X, and several a row */
} features;

static int sort_of(lpgemm_dtype_t x_type) {
  const int bits = lpg_bits(x_type);
  return bits > 16 ? 3 : bits > 8 ? 0 : x_type == LPGEMM_I8 || !lpg_is_integer_kind(x_type) ? 1 : 2;
}

static int decoder_of(lpgemm_dtype_t type) {
  return lpg_is_integer_kind(type) ? 0 : lpg_kind(type) == LPGEMM_KIND_FLOAT ? 1 : 2;
}

static features features_of(lpgemm_dtype_t type, lpgemm_dtype_t x_type, lpgemm_dtype_t scale_type, lpgemm_zero_t zero,
                            int zeros_are_real, int64_t group) {
  const int x_bits = lpg_bits(x_type);
  features f;
  f.x_sort = sort_of(x_type);
  f.x_bits = f.x_sort == 2 ? x_bits : 0;
  f.x_type = f.x_sort == 2 ? 0 : x_type;
  f.decoder = decoder_of(type);
  f.bits = lpg_bits(type);
  f.type = type;
  f.group = group;
  f.groups = group == 0 || group > 64 ? 2 : group > 16 ? 1 : 0;
  f.zeros = zero == LPGEMM_ZERO_MINIMUM ? 3 : zero == LPGEMM_ZERO_PER_GROUP ? 1 + zeros_are_real : 0;
  f.other_scales = scale_type && group != 0 && scale_type != (x_bits > 8 ? x_type : LPGEMM_F16);
  return f;
}

static features features_of_point(const lpg_measured_point *p) {
  return features_of(p->type, p->x_type, p->scale_type, p->zero, lpg_is_real(p->zero_type), p->group);
}

static features features_of_problem(const lpg_problem *p) {
  const lpgemm_weight_desc_t *d = &p->plan->desc;
  return features_of(d->type, p->x_type, d->scale_type, d->zero, lpg_is_real(d->zero_type), lpg_group_columns(p->plan));
}

static double apart(const features *a, const features *b) {
  if (a->x_sort != b->x_sort || a->decoder != b->decoder) return HUGE_VAL;
  double d = 0.5 * abs(a->bits - b->bits) + 0.5 * abs(a->x_bits - b->x_bits) + 2.0 * abs(a->groups - b->groups);
  if (a->zeros != b->zeros) d += a->zeros && b->zeros ? 0.5 : 2.0;
  if (a->other_scales != b->other_scales) d += 2.0;
  if (a->group != b->group) d += 0.1;
  if (a->type != b->type) d += 0.05;
  if (a->x_type != b->x_type) d += a->x_sort == 0 ? 0.25 : 0.5;
  return d;
}

typedef struct sizes {
  double n, k, m; /* octaves */
} sizes;

static sizes sizes_of(const lpg_problem *p) {
  const lpgemm_weight_desc_t *d = &p->plan->desc;
  return (sizes){log2(fmax(1.0, (double)d->n)), log2(fmax(1.0, (double)d->k)), log2(fmax(1.0, (double)p->m))};
}

static double octaves(const lpg_measured_point *p, sizes s) {
  return fabs(p->log2_n - s.n) + fabs(p->log2_k - s.k) + fabs(p->log2_m - s.m);
}

double lpgemm_i_measured_distance(const lpg_measured_point *point, const lpg_problem *problem) {
  const features a = features_of_point(point), b = features_of_problem(problem);
  return octaves(point, sizes_of(problem)) + apart(&a, &b);
}

/* ---- the nearest points ---- */

/* What is chosen for all numbers of rows alike is chosen by the model alone, and so are weights with two levels of
 * scales, of which the tables have none. */
static int takes_part(const lpg_problem *p) {
  return !p->batch_invariant && !p->plan->desc.super_scale_type && p->m > 0;
}

/* Takes the point for the forms that were timed there and have none so near. */
static void take_nearer(const lpg_measured *t, int point, double distance, lpg_near *near) {
  const float *us = t->us + (size_t)point * (size_t)t->forms;
  if (distance >= LPG_MEASURED_REACH) return;
  for (int f = 0; f < t->forms; f++) {
    if (us[f] <= 0.0f || distance >= near->distance[f]) continue;
    near->point[f] = &t->point[point];
    near->distance[f] = distance;
  }
}

void lpgemm_i_measured_near(const lpg_problem *problem, const lpg_device *device, lpg_near *near) {
  near->table = NULL;
  near->planned = NULL;
  for (int i = 0; i < lpgemm_i_measured_count && takes_part(problem); i++) {
    if (strcmp(lpgemm_i_measured[i].device, device->name) == 0) near->table = &lpgemm_i_measured[i];
  }
  if (!near->table) return;
  const lpg_measured *t = near->table;
  const features wanted = features_of_problem(problem);
  const sizes size = sizes_of(problem);
  for (int f = 0; f < t->forms; f++) {
    near->point[f] = NULL;
    near->distance[f] = LPG_MEASURED_REACH;
  }
  for (int i = 0; i < t->count; i += t->point[i].alike) {
    const lpg_measured_point *p = &t->point[i];
    if (sort_of(p->x_type) != wanted.x_sort || decoder_of(p->type) != wanted.decoder) continue; /* most of them */
    const features has = features_of_point(p);
    const double types = apart(&has, &wanted);
    if (types >= LPG_MEASURED_REACH) continue;
    for (int j = i; j < i + p->alike; j++) take_nearer(t, j, types + octaves(&t->point[j], size), near);
  }
}

/* ---- what they say ---- */

/* The end of a word of a name. */
static const char *word_end(const char *s) {
  while (*s && *s != '.') s++;
  return s;
}

static int same_word(const char *a, const char *b) {
  const size_t length = (size_t)(word_end(a) - a);
  return (size_t)(word_end(b) - b) == length && memcmp(a, b, length) == 0;
}

/* "wide.u4.bf16.256x128.sm90a" has the form "wide.f16.256x128.sm90a". */
static int has_form(const char *name, const char *form) {
  if (name[0] != form[0] || !same_word(name, form)) return 0;
  const char *x = word_end(word_end(name) + 1) + 1, *form_x = word_end(form) + 1;
  return (same_word(x, form_x) || (same_word(x, "bf16") && same_word(form_x, "f16"))) &&
         strcmp(word_end(x), word_end(form_x)) == 0;
}

static int form_of(const lpg_kernel *kernel, const lpg_measured *table) {
  for (int f = 0; f < table->forms; f++) {
    if (has_form(kernel->name, table->form[f])) return f;
  }
  return -1;
}

/* The point as a problem; 0 if it is none. Kernels mostly share a point, and a plan takes microseconds. */
static int make_problem(const lpg_measured_point *point, lpg_near *near, lpg_problem *problem) {
  lpgemm_weight_desc_t d = {.size = sizeof d};
  d.n = point->n;
  d.k = point->k;
  d.type = point->type;
  d.group_k = point->group;
  d.scale_type = point->scale_type;
  d.zero = point->zero;
  d.zero_type = point->zero_type;
  if (d.zero == LPGEMM_ZERO_CONSTANT) d.zero_constant = ldexpf(0.5f, lpg_bits(d.type));
  if (lpg_kind(d.type) == LPGEMM_KIND_CODEBOOK) {
    const int entries = 1 << lpg_bits(d.type);
    for (int i = 0; i < entries; i++) d.codebook[i] = 2.0f * (float)i / (float)(entries - 1) - 1.0f;
  }
  if (near->planned != point) {
    near->planned = NULL;
    if (lpgemm_i_make_plan(&d, &near->plan) != LPGEMM_SUCCESS) return 0;
    near->planned = point;
  }
  *problem = (lpg_problem){.plan = &near->plan, .m = point->m, .x_type = point->x_type, .y_type = LPGEMM_F16};
  problem->x_scale_mode = lpg_bits(point->x_type) <= 8 ? LPGEMM_X_SCALE_ROW : LPGEMM_X_SCALE_NONE;
  problem->workspace = SIZE_MAX;
  return 1;
}

double lpgemm_i_expect(const lpg_kernel *kernel, const lpg_problem *problem, const lpg_device *device, lpg_near *near,
                       double *distance) {
  static const double most = 16.0; /* more is no correction */
  const double estimate = lpgemm_i_estimate(kernel, problem, device);
  const int form = near->table ? form_of(kernel, near->table) : -1;
  lpg_problem at;
  if (distance) *distance = -1.0;
  if (form < 0 || !near->point[form] || !make_problem(near->point[form], near, &at)) return estimate;
  const lpg_measured *t = near->table;
  const double us = (double)t->us[(near->point[form] - t->point) * t->forms + form];
  const double ratio = us / lpgemm_i_estimate(kernel, &at, device);
  if (!(ratio >= 1.0 / most && ratio <= most)) return estimate;
  if (distance) *distance = near->distance[form];
  return estimate * pow(ratio, 1.0 - near->distance[form] / LPG_MEASURED_REACH);
}
