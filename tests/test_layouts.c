/* The layout algebra with the examples of the Tilus paper (sections 4 and 5), and the packed tile. */
#include "layouts/algebra.h"
#include "layouts/tile.h"
#include "test.h"

/* ---- the primitives and the product ---- */

static int is_at(lpg_layout f, int thread, int local, int row, int column) {
  lpg_coord c = lpg_element(f, thread, local);
  return c.at[0] == row && c.at[1] == column;
}

static void primitives(void) {
  if (!test_case("layouts/primitives")) return;
  lpg_layout local = lpg_local(2, 3), spatial = lpg_spatial(2, 3); /* figure 4 */
  CHECK_INT(lpg_threads(local), 1);
  CHECK_INT(lpg_locals(local), 6);
  CHECK_INT(lpg_threads(spatial), 6);
  CHECK_INT(lpg_locals(spatial), 1);
  lpg_layout column_local = lpg_column_local(2, 3), column_spatial = lpg_column_spatial(2, 3);
  for (int i = 0; i < 6; i++) {
    CHECK(is_at(local, 0, i, i / 3, i % 3));
    CHECK(is_at(spatial, i, 0, i / 3, i % 3));
    CHECK(is_at(column_local, 0, i, i % 2, i / 2));
    CHECK(is_at(column_spatial, i, 0, i % 2, i / 2));
  }
  /* a column-major form is a product of row-major ones */
  CHECK(lpg_same(column_local, lpg_product(lpg_local(1, 3), lpg_local(2, 1))));
  CHECK(lpg_same(column_spatial, lpg_product(lpg_spatial(1, 3), lpg_spatial(2, 1))));
  CHECK(!lpg_same(column_local, local));
}

/* Figure 5: c = a x b has shape (4, 6), 6 threads and 4 elements a thread with c(t, i) = a(t/6, i/2) * (2, 6) +
 * b(t%6, i%2); e = d x a is the column-major local layout. */
static void product_examples(void) {
  if (!test_case("layouts/product")) return;
  lpg_layout a = lpg_local(2, 1), b = lpg_product(lpg_spatial(2, 3), lpg_local(1, 2)), c = lpg_product(a, b);
  CHECK_INT(c.shape[0], 4);
  CHECK_INT(c.shape[1], 6);
  CHECK_INT(lpg_threads(c), 6);
  CHECK_INT(lpg_locals(c), 4);
  for (int t = 0; t < 6; t++) {
    for (int i = 0; i < 4; i++) CHECK(is_at(c, t, i, i / 2 * 2 + t / 3, t % 3 * 2 + i % 2));
  }
  lpg_layout d = lpg_local(1, 2), e = lpg_product(d, a);
  CHECK(lpg_same(e, lpg_column_local(2, 2)));
  for (int i = 0; i < 4; i++) CHECK(is_at(e, 0, i, i % 2, i / 2));
  CHECK(!lpg_same(lpg_product(a, d), lpg_product(d, a))); /* not commutative */
  CHECK(!lpg_same(lpg_product(a, b), lpg_product(b, a)));
}

/* PTX: accumulator c0..c3 of m16n8k16 (and the operand A of m16n8k8 of figure 3): row = lane / 4, 8 more for c2 and
 * c3; column = lane % 4 * 2 + (i & 1). */
static void mma_accumulator(void) {
  if (!test_case("layouts/mma_accumulator")) return;
  lpg_layout f = lpg_product3(lpg_local(2, 1), lpg_spatial(8, 4), lpg_local(1, 2));
  CHECK_INT(lpg_threads(f), 32);
  CHECK_INT(lpg_locals(f), 4);
  for (int lane = 0; lane < 32; lane++) {
    for (int i = 0; i < 4; i++) {
      int row = (lane >> 2) + (i < 2 ? 0 : 8), column = lane % 4 * 2 + (i & 1);
      CHECK(is_at(f, lane, i, row, column));
      lpg_place p = lpg_holder(f, row, column);
      CHECK_INT(p.thread, lane);
      CHECK_INT(p.local, i);
    }
  }
}

/* The 16 x 8 tile of int6 that 32 threads hold is read as 3 bytes a thread. */
static void view(void) {
  if (!test_case("layouts/view")) return;
  lpg_layout six = lpg_product3(lpg_local(2, 1), lpg_column_spatial(4, 8), lpg_local(2, 1));
  lpg_layout bytes = lpg_product(lpg_local(1, 3), lpg_spatial(1, 32));
  CHECK_INT(six.shape[0], 16);
  CHECK_INT(six.shape[1], 8);
  CHECK_INT(lpg_threads(six), 32);
  CHECK_INT(lpg_locals(six), 4);
  CHECK(lpg_can_view(6, six, 8, bytes));
  CHECK(lpg_can_view(8, bytes, 6, six));
  CHECK(!lpg_can_view(5, six, 8, bytes)); /* other bits a thread */
  CHECK(!lpg_can_view(6, six, 8, lpg_product(lpg_local(1, 4), lpg_spatial(1, 32))));
  CHECK(!lpg_can_view(6, six, 8, lpg_product(lpg_local(1, 6), lpg_spatial(1, 16)))); /* the same bits, other threads */
  for (int bits = 1; bits <= 8; bits++) {
    lpg_layout words = lpg_product(lpg_local(1, lpg_lane_words(bits)), lpg_spatial(1, 32));
    CHECK(lpg_can_view(bits, lpg_tile_layout(bits), 32, words));
  }
}

static void division(void) {
  if (!test_case("layouts/division")) return;
  lpg_layout q = lpg_local(1, 1);
  CHECK(lpg_divide(lpg_local(2, 4), lpg_local(1, 2), &q));
  CHECK(lpg_same(q, lpg_local(2, 2)));
  lpg_layout mma = lpg_product3(lpg_local(2, 1), lpg_spatial(8, 4), lpg_local(1, 2));
  CHECK(lpg_divide(mma, lpg_local(1, 2), &q));
  CHECK(lpg_same(q, lpg_product(lpg_local(2, 1), lpg_spatial(8, 4))));
  CHECK(lpg_divide(mma, lpg_product(lpg_spatial(8, 4), lpg_local(1, 2)), &q));
  CHECK(lpg_same(q, lpg_local(2, 1)));
  CHECK(lpg_divide(mma, mma, &q));
  CHECK(lpg_same(q, lpg_local(1, 1)));
  CHECK(lpg_divide(mma, lpg_local(1, 1), &q));
  CHECK(lpg_same(q, mma));
  /* an extent that no mode of the dividend ends at */
  lpg_layout twelve = lpg_product(lpg_local(1, 6), lpg_local(1, 2));
  CHECK(lpg_same(twelve, lpg_local(1, 12)));
  CHECK_INT(twelve.modes, 1);
  CHECK(lpg_divide(twelve, lpg_local(1, 3), &q));
  CHECK(lpg_same(q, lpg_local(1, 4)));

  lpg_layout untouched = q;
  CHECK(!lpg_divide(lpg_local(2, 4), lpg_local(3, 1), &q));        /* the shape does not divide */
  CHECK(!lpg_divide(lpg_local(2, 4), lpg_spatial(1, 2), &q));      /* it has no threads */
  CHECK(!lpg_divide(lpg_column_local(2, 2), lpg_local(1, 2), &q)); /* other order of the elements */
  CHECK(!lpg_divide(mma, lpg_local(2, 1), &q));
  CHECK(!lpg_divide(mma, lpg_column_spatial(2, 2), &q));
  CHECK(!lpg_divide(lpg_local(1, 2), lpg_local(2, 4), &q));
  CHECK(memcmp(&untouched, &q, sizeof q) == 0);
}

/* ---- random products of primitives ---- */

static lpg_layout random_primitive(void) {
  int rows = (int)test_between(1, 3), columns = (int)test_between(1, 3);
  switch (test_between(0, 3)) {
    case 0: return lpg_local(rows, columns);
    case 1: return lpg_spatial(rows, columns);
    case 2: return lpg_column_local(rows, columns);
    default: return lpg_column_spatial(rows, columns);
  }
}

static void random_laws(void) {
  if (!test_case("layouts/random")) return;
  int noncommuting = 0;
  for (int round = 0; round < 400; round++) {
    lpg_layout f = lpg_product(random_primitive(), random_primitive()), g = random_primitive(), h = random_primitive();
    lpg_layout fg = lpg_product(f, g), fgh = lpg_product(fg, h);
    CHECK(lpg_same(fgh, lpg_product(f, lpg_product(g, h)))); /* associative */
    noncommuting += !lpg_same(fg, lpg_product(g, f));
    int tg = lpg_threads(g), lg = lpg_locals(g);
    CHECK_INT(lpg_threads(fg), lpg_threads(f) * tg);
    CHECK_INT(lpg_locals(fg), lpg_locals(f) * lg);
    for (int t = 0; t < lpg_threads(fg); t++) {
      for (int i = 0; i < lpg_locals(fg); i++) { /* the definition of the product */
        lpg_coord a = lpg_element(f, t / tg, i / lg), b = lpg_element(g, t % tg, i % lg);
        CHECK(is_at(fg, t, i, a.at[0] * g.shape[0] + b.at[0], a.at[1] * g.shape[1] + b.at[1]));
      }
    }
    CHECK_INT(lpg_threads(fgh) * lpg_locals(fgh), fgh.shape[0] * fgh.shape[1]);
    for (int row = 0; row < fgh.shape[0]; row++) {
      for (int column = 0; column < fgh.shape[1]; column++) { /* holder and element are inverse */
        lpg_place p = lpg_holder(fgh, row, column);
        CHECK(p.thread >= 0 && p.thread < lpg_threads(fgh) && p.local >= 0 && p.local < lpg_locals(fgh));
        CHECK(is_at(fgh, p.thread, p.local, row, column));
      }
    }
    lpg_layout q = lpg_local(1, 1);
    CHECK(lpg_divide(fgh, h, &q) && lpg_same(q, fg));
    CHECK(lpg_divide(fgh, lpg_product(g, h), &q) && lpg_same(q, f));
    CHECK(lpg_can_view(3, fgh, 3, lpg_canonical(fgh)));
  }
  CHECK(noncommuting > 100);
}

/* ---- the packed tile ---- */

/* PTX, operand A of mma.m16n8k16: row = lane / 4 for a0, a1, a4, a5, else 8 more; column = lane % 4 * 2 + (i & 1) for
 * a0..a3, else 8 more. */
static void tile_operand(int bits) {
  if (!test_case("layouts/tile_operand/%d", bits)) return;
  lpg_layout f = lpg_tile_layout(bits);
  CHECK_INT(f.shape[0], 16);
  CHECK_INT(f.shape[1], lpg_tile_k(bits));
  CHECK_INT(lpg_threads(f), 32);
  CHECK_INT(lpg_locals(f), lpg_tile_k(bits) / 2);
  for (int lane = 0; lane < 32; lane++) {
    for (int i = 0; i < lpg_locals(f); i++) {
      int a = i % 8, step = i / 8;
      int row = (lane >> 2) + (a < 2 || (a >= 4 && a < 6) ? 0 : 8);
      CHECK(is_at(f, lane, i, row, 16 * step + lane % 4 * 2 + (a & 1) + (a < 4 ? 0 : 8)));
    }
  }
}

/* Every bit of the tile is used once, and every 32-bit word belongs to one lane and one row, rows g and g + 8 taking
 * turns. */
static void tile_bits(int bits) {
  if (!test_case("layouts/tile_bits/%d", bits)) return;
  enum { MOST_WORDS = 16 * 256 * 8 / 32 };
  static const int columns[9] = {0, 256, 128, 256, 64, 256, 128, 256, 32}; /* 32 at 8 bits, 64 at 4, ... */
  int words = 16 * columns[bits] * bits / 32;
  CHECK_INT(lpg_tile_k(bits), columns[bits]);
  CHECK_INT(lpg_tile_bytes(bits), 4 * words);
  CHECK_INT(lpg_lane_words(bits) % 4, 0); /* whole 16-byte vectors */
  CHECK_INT(lpg_lane_words(bits) * 32, words);
  uint32_t used[MOST_WORDS] = {0};
  int row_of[MOST_WORDS], lane_of[MOST_WORDS];
  for (int w = 0; w < MOST_WORDS; w++) row_of[w] = lane_of[w] = -1;
  for (int row = 0; row < 16; row++) {
    for (int column = 0; column < columns[bits]; column++) {
      int lane = row % 8 * 4 + column % 8 / 2; /* g = row % 8, t = the lane that owns 2t, 2t+1, 2t+8, 2t+9 */
      for (int bit = 0; bit < bits; bit++) {
        int at = lpg_tile_bit(bits, row, column, bit);
        CHECK(at >= 0 && at < 32 * words);
        if (at < 0 || at >= 32 * words) return;
        int w = at / 32;
        CHECK(!(used[w] >> (at % 32) & 1));
        used[w] |= 1u << (at % 32);
        CHECK(row_of[w] == -1 || row_of[w] == row);
        CHECK(lane_of[w] == -1 || lane_of[w] == lane);
        row_of[w] = row;
        lane_of[w] = lane;
      }
    }
  }
  for (int w = 0; w < words; w++) {
    CHECK_INT(used[w], 0xffffffffu);
    CHECK_INT(lane_of[w], w / 4 % 32); /* lane after lane in vectors of four words */
    CHECK_INT(row_of[w], lane_of[w] / 4 + w % 2 * 8);
  }
}

static void row_slots(void) {
  if (!test_case("layouts/row_slots")) return;
  int seen = 0;
  for (int row = 0; row < 16; row++) {
    int slot = lpg_row_slot(row);
    CHECK(slot >= 0 && slot < 16);
    CHECK_INT(lpg_slot_row(slot), row);
    CHECK_INT(slot, row < 8 ? 2 * row : 2 * (row - 8) + 1);
    seen |= 1 << slot;
  }
  CHECK_INT(seen, 0xffff);
}

void suite_layouts(void) {
  primitives();
  product_examples();
  mma_accumulator();
  view();
  division();
  random_laws();
  for (int bits = 1; bits <= 8; bits++) {
    tile_operand(bits);
    tile_bits(bits);
  }
  row_slots();
}
