/* The layout algebra (Tilus, sections 4 and 5): which thread holds which element of a tile, and where.
 *
 * A layout maps (thread, local index) to the coordinates of one element of a tile. It is kept in the unified form:
 * every dimension of the shape is split into modes (row-major within the dimension), and each mode is handed either to
 * the threads or to the local storage of a thread; the last mode of a list varies fastest.
 *
 *   lpg_local(2, 3)     one thread holds 6 elements:  local i is (i / 3, i % 3)
 *   lpg_spatial(2, 3)   6 threads hold one each:      thread t is (t / 3, t % 3)
 *   lpg_product(f, g)   every element of f becomes a tile laid out as g
 *
 * For example the accumulator of mma.m16n8 is local(2,1) x spatial(8,4) x local(1,2). */
#ifndef LPG_LAYOUTS_ALGEBRA_H
#define LPG_LAYOUTS_ALGEBRA_H

#include "base.h"

enum { LPG_MAX_MODES = 12 };

typedef struct lpg_layout {
  int shape[2];
  int modes;                   /* number of modes in use */
  int mode_dim[LPG_MAX_MODES]; /* the dimension that a mode splits; modes of one dimension stand outer to inner */
  int mode_size[LPG_MAX_MODES];
  int spatials, locals;       /* lengths of the two lists below */
  int spatial[LPG_MAX_MODES]; /* modes that number the threads, slowest first */
  int local[LPG_MAX_MODES];   /* modes that number a thread's elements, slowest first */
} lpg_layout;

typedef struct lpg_coord {
  int at[2];
} lpg_coord;

typedef struct lpg_place {
  int thread, local;
} lpg_place;

/* ---- construction ---- */

LPG_FN lpg_layout lpg_two_modes(int rows, int columns) {
  lpg_layout f = LPG_ZERO;
  f.shape[0] = rows;
  f.shape[1] = columns;
  f.modes = 2;
  f.mode_dim[0] = 0;
  f.mode_dim[1] = 1;
  f.mode_size[0] = rows;
  f.mode_size[1] = columns;
  return f;
}

LPG_FN lpg_layout lpg_local_ordered(int rows, int columns, int slow, int fast) {
  lpg_layout f = lpg_two_modes(rows, columns);
  f.locals = 2;
  f.local[0] = slow;
  f.local[1] = fast;
  return f;
}

LPG_FN lpg_layout lpg_spatial_ordered(int rows, int columns, int slow, int fast) {
  lpg_layout f = lpg_two_modes(rows, columns);
  f.spatials = 2;
  f.spatial[0] = slow;
  f.spatial[1] = fast;
  return f;
}

LPG_FN lpg_layout lpg_local(int rows, int columns) { return lpg_local_ordered(rows, columns, 0, 1); }
LPG_FN lpg_layout lpg_spatial(int rows, int columns) { return lpg_spatial_ordered(rows, columns, 0, 1); }
LPG_FN lpg_layout lpg_column_local(int rows, int columns) { return lpg_local_ordered(rows, columns, 1, 0); }
LPG_FN lpg_layout lpg_column_spatial(int rows, int columns) { return lpg_spatial_ordered(rows, columns, 1, 0); }

/* ---- counting ---- */

LPG_FN int lpg_threads(lpg_layout f) {
  int threads = 1;
  for (int i = 0; i < f.spatials; i++) threads *= f.mode_size[f.spatial[i]];
  return threads;
}

LPG_FN int lpg_locals(lpg_layout f) {
  int locals = 1;
  for (int i = 0; i < f.locals; i++) locals *= f.mode_size[f.local[i]];
  return locals;
}

/* ---- evaluation ---- */

LPG_FN lpg_coord lpg_element(lpg_layout f, int thread, int local) {
  int index[LPG_MAX_MODES] = LPG_ZERO;
  for (int i = f.spatials - 1; i >= 0; i--) {
    index[f.spatial[i]] = thread % f.mode_size[f.spatial[i]];
    thread /= f.mode_size[f.spatial[i]];
  }
  for (int i = f.locals - 1; i >= 0; i--) {
    index[f.local[i]] = local % f.mode_size[f.local[i]];
    local /= f.mode_size[f.local[i]];
  }
  lpg_coord c = LPG_ZERO;
  for (int i = 0; i < f.modes; i++) c.at[f.mode_dim[i]] = c.at[f.mode_dim[i]] * f.mode_size[i] + index[i];
  return c;
}

/* The inverse of lpg_element(). */
LPG_FN lpg_place lpg_holder(lpg_layout f, int row, int column) {
  int rest[2] = LPG_ZERO;
  rest[0] = row;
  rest[1] = column;
  int index[LPG_MAX_MODES] = LPG_ZERO;
  for (int i = f.modes - 1; i >= 0; i--) {
    index[i] = rest[f.mode_dim[i]] % f.mode_size[i];
    rest[f.mode_dim[i]] /= f.mode_size[i];
  }
  lpg_place p = LPG_ZERO;
  for (int i = 0; i < f.spatials; i++) p.thread = p.thread * f.mode_size[f.spatial[i]] + index[f.spatial[i]];
  for (int i = 0; i < f.locals; i++) p.local = p.local * f.mode_size[f.local[i]] + index[f.local[i]];
  return p;
}

/* ---- product and division ---- */

/* 1 if `mode + 1` comes right after `mode` in a list. */
LPG_FN int lpg_follows(const int *list, int length, int mode) {
  for (int i = 0; i + 1 < length; i++) {
    if (list[i] == mode && list[i + 1] == mode + 1) return 1;
  }
  return 0;
}

/* Takes a mode out of a list and closes the gap in the numbers; returns the new length. */
LPG_FN int lpg_without(int *list, int length, int mode) {
  int kept = 0;
  for (int i = 0; i < length; i++) {
    if (list[i] != mode) list[kept++] = list[i] - (list[i] > mode);
  }
  return kept;
}

/* Drops modes of size 1, which carry no information, and joins neighbours that count on as one, so that equal layouts
 * have equal forms. */
LPG_FN lpg_layout lpg_canonical(lpg_layout f) {
  lpg_layout out = LPG_ZERO;
  int renamed[LPG_MAX_MODES] = LPG_ZERO;
  out.shape[0] = f.shape[0];
  out.shape[1] = f.shape[1];
  for (int dim = 0; dim < 2; dim++) {
    for (int i = 0; i < f.modes; i++) {
      if (f.mode_dim[i] != dim || f.mode_size[i] == 1) continue;
      renamed[i] = out.modes;
      out.mode_dim[out.modes] = dim;
      out.mode_size[out.modes] = f.mode_size[i];
      out.modes++;
    }
  }
  for (int i = 0; i < f.spatials; i++) {
    if (f.mode_size[f.spatial[i]] != 1) out.spatial[out.spatials++] = renamed[f.spatial[i]];
  }
  for (int i = 0; i < f.locals; i++) {
    if (f.mode_size[f.local[i]] != 1) out.local[out.locals++] = renamed[f.local[i]];
  }
  for (int m = out.modes - 2; m >= 0; m--) {
    if (out.mode_dim[m] != out.mode_dim[m + 1]) continue;
    if (!lpg_follows(out.spatial, out.spatials, m) && !lpg_follows(out.local, out.locals, m)) continue;
    out.mode_size[m] *= out.mode_size[m + 1];
    out.modes--;
    for (int i = m + 1; i < out.modes; i++) {
      out.mode_dim[i] = out.mode_dim[i + 1];
      out.mode_size[i] = out.mode_size[i + 1];
    }
    out.spatials = lpg_without(out.spatial, out.spatials, m + 1);
    out.locals = lpg_without(out.local, out.locals, m + 1);
  }
  return out;
}

/* The Kronecker product: h(t, i) = f(t / Tg, i / Lg) * shape(g) + g(t % Tg, i % Lg). */
LPG_FN lpg_layout lpg_product(lpg_layout outer, lpg_layout inner) {
  lpg_layout f = lpg_canonical(outer);
  lpg_layout g = lpg_canonical(inner);
  lpg_layout h = f;
  h.shape[0] = f.shape[0] * g.shape[0];
  h.shape[1] = f.shape[1] * g.shape[1];
  for (int i = 0; i < g.modes; i++) {
    h.mode_dim[f.modes + i] = g.mode_dim[i];
    h.mode_size[f.modes + i] = g.mode_size[i];
  }
  for (int i = 0; i < g.spatials; i++) h.spatial[f.spatials + i] = f.modes + g.spatial[i];
  for (int i = 0; i < g.locals; i++) h.local[f.locals + i] = f.modes + g.local[i];
  h.modes += g.modes;
  h.spatials += g.spatials;
  h.locals += g.locals;
  return lpg_canonical(h);
}

LPG_FN lpg_layout lpg_product3(lpg_layout f, lpg_layout g, lpg_layout h) { return lpg_product(f, lpg_product(g, h)); }

/* 1 if both map every (thread, local) to the same element. */
LPG_FN int lpg_same(lpg_layout f, lpg_layout g) {
  if (f.shape[0] != g.shape[0] || f.shape[1] != g.shape[1]) return 0;
  if (lpg_threads(f) != lpg_threads(g) || lpg_locals(f) != lpg_locals(g)) return 0;
  for (int t = 0; t < lpg_threads(f); t++) {
    for (int i = 0; i < lpg_locals(f); i++) {
      lpg_coord a = lpg_element(f, t, i), b = lpg_element(g, t, i);
      if (a.at[0] != b.at[0] || a.at[1] != b.at[1]) return 0;
    }
  }
  return 1;
}

/* Division: the f with h = f x g. Returns 1 and writes f, or 0 if there is none. A quotient is recognised by its
 * values: f(t, i) must be h(t * Tg, i * Lg) / shape(g), and multiplying back must give h. */
LPG_FN int lpg_divide(lpg_layout h, lpg_layout g, lpg_layout *quotient) {
  if (h.shape[0] % g.shape[0] != 0 || h.shape[1] % g.shape[1] != 0) return 0;
  lpg_layout f = lpg_canonical(h);
  int rest[2] = LPG_ZERO;
  rest[0] = g.shape[0];
  rest[1] = g.shape[1];
  for (int i = f.modes - 1; i >= 0; i--) { /* strip g's extent from the inner end of every dimension */
    int dim = f.mode_dim[i];
    if (rest[dim] == 1) continue;
    if (rest[dim] % f.mode_size[i] == 0) {
      rest[dim] /= f.mode_size[i];
      f.mode_size[i] = 1;
    } else if (f.mode_size[i] % rest[dim] == 0) {
      f.mode_size[i] /= rest[dim];
      rest[dim] = 1;
    } else {
      return 0;
    }
  }
  f.shape[0] = h.shape[0] / g.shape[0];
  f.shape[1] = h.shape[1] / g.shape[1];
  f = lpg_canonical(f);
  if (!lpg_same(lpg_product(f, g), h)) return 0;
  *quotient = f;
  return 1;
}

/* View: two (type, layout) pairs hold the same bits in the same threads, so one may be read as the other. */
LPG_FN int lpg_can_view(int bits_f, lpg_layout f, int bits_g, lpg_layout g) {
  return lpg_threads(f) == lpg_threads(g) && lpg_locals(f) * bits_f == lpg_locals(g) * bits_g;
}

#endif
