/* Regular expressions by sets of states: each character of the text is looked at once for every instruction at most, so
 * that no pattern takes exponential time. Jumps are relative, so that code can be copied and moved. */
#include "pattern.h"

#include <string.h>

enum { MOST_CODE = 1500, MOST_CLASSES = 40, MOST_GROUPS = 40, MOST_LOOKS = 3, MOST_REPEAT = 64 };

typedef enum op { CHAR, ANY, CLASS, SPLIT, JUMP, BEGIN, END, EDGE, LOOK, ACCEPT } op;

typedef struct instruction {
  uint8_t op;
  uint8_t value; /* CHAR: which; CLASS: number; EDGE and LOOK: 1 = must not */
  int16_t to;    /* SPLIT, JUMP: the other way; LOOK: past the end of what is looked for */
} instruction;

typedef struct program {
  const char *at; /* what is left of the pattern */
  int groups, bad;
  int length, classes;
  instruction code[MOST_CODE];
  uint32_t members[MOST_CLASSES][8];
} program;

/* ---- pattern -> program ---- */

static void emit(program *p, op what, int value, int to) {
  if (p->length == MOST_CODE) {
    p->bad = 1;
    return;
  }
  p->code[p->length++] = (instruction){(uint8_t)what, (uint8_t)value, (int16_t)to};
}

/* Makes room for an instruction at `where`, before code whose jumps stay within it. */
static void insert(program *p, int where, op what, int value, int to) {
  emit(p, ACCEPT, 0, 0);
  if (p->bad) return;
  memmove(p->code + where + 1, p->code + where, (size_t)(p->length - 1 - where) * sizeof *p->code);
  p->code[where] = (instruction){(uint8_t)what, (uint8_t)value, (int16_t)to};
}

static void add_range(uint32_t set[8], int low, int high) {
  for (int c = low; c <= high; c++) set[c / 32] |= 1u << c % 32;
}

/* \d, \w, \s and their opposites; 0 for other letters. */
static int add_letter(uint32_t set[8], char letter) {
  uint32_t members[8] = {0};
  switch (letter | 32) {
    case 'd': add_range(members, '0', '9'); break;
    case 'w':
      add_range(members, '0', '9');
      add_range(members, 'a', 'z');
      add_range(members, 'A', 'Z');
      add_range(members, '_', '_');
      break;
    case 's':
      add_range(members, '\t', '\r');
      add_range(members, ' ', ' ');
      break;
    default: return 0;
  }
  for (int i = 0; i < 8; i++) set[i] |= letter & 32 ? members[i] : ~members[i];
  return 1;
}

static int is_alphanumeric(char c) { return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z'); }

static void emit_class(program *p, const uint32_t set[8]) {
  if (p->classes == MOST_CLASSES) {
    p->bad = 1;
    return;
  }
  memcpy(p->members[p->classes], set, sizeof p->members[0]);
  emit(p, CLASS, p->classes++, 0);
}

/* After '['. */
static void parse_class(program *p) {
  uint32_t set[8] = {0};
  const int negated = *p->at == '^';
  p->at += negated;
  for (int first = 1; *p->at && (*p->at != ']' || first); first = 0) {
    int low = (uint8_t)*p->at++;
    if (low == '\\') {
      if (add_letter(set, *p->at)) {
        p->at++;
        continue;
      }
      if (is_alphanumeric(*p->at) || !*p->at) p->bad = 1;
      if (*p->at) low = (uint8_t)*p->at++;
    }
    int high = low;
    if (p->at[0] == '-' && p->at[1] && p->at[1] != ']') {
      high = (uint8_t)p->at[1];
      p->at += 2;
      if (high == '\\' || high < low) p->bad = 1;
    }
    add_range(set, low, high);
  }
  if (*p->at != ']') {
    p->bad = 1;
    return;
  }
  p->at++;
  for (int i = 0; i < 8 && negated; i++) set[i] = ~set[i];
  emit_class(p, set);
}

static void parse_escape(program *p) {
  uint32_t set[8] = {0};
  const char letter = *p->at;
  if (letter) p->at++;
  if (add_letter(set, letter)) {
    emit_class(p, set);
  } else if ((letter | 32) == 'b') {
    emit(p, EDGE, letter == 'B', 0);
  } else if (letter == 'Z') {
    emit(p, END, 1, 0);
  } else if (letter == 'A') {
    emit(p, BEGIN, 0, 0);
  } else if (!letter || is_alphanumeric(letter)) {
    p->bad = 1; /* back references and what this part of the language has not */
  } else {
    emit(p, CHAR, (uint8_t)letter, 0);
  }
}

/* Groups nest MOST_GROUPS deep at most. */
/* NOLINTBEGIN(misc-no-recursion) */
static void parse_choice(program *p);

/* After '(': a group, with or without a name, or something that must (not) follow. */
static void parse_group(program *p) {
  const int begin = p->length;
  int look = 0;
  if (++p->groups > MOST_GROUPS) {
    p->bad = 1;
    return;
  }
  if (strncmp(p->at, "?:", 2) == 0) {
    p->at += 2;
  } else if (strncmp(p->at, "?=", 2) == 0 || strncmp(p->at, "?!", 2) == 0) {
    look = 1 + (p->at[1] == '!');
    p->at += 2;
  } else if (strncmp(p->at, "?P<", 3) == 0) {
    while (*p->at && *p->at != '>') p->at++;
    p->at += *p->at == '>';
  } else if (*p->at == '?') {
    p->bad = 1;
  }
  parse_choice(p);
  if (*p->at != ')') {
    p->bad = 1;
    return;
  }
  p->at++;
  p->groups--;
  if (look) {
    emit(p, ACCEPT, 0, 0);
    insert(p, begin, LOOK, look == 2, p->length - begin + 1);
  }
}

/* {m}, {m,} and {m,n}; -1 without an upper end. 0: not of that form, and a brace stands for itself. */
static int parse_counts(program *p, int *least, int *most) {
  const char *s = p->at + 1;
  int numbers[2] = {0, 0}, digits[2] = {0, 0}, comma = 0;
  for (; *s && *s != '}'; s++) {
    if (*s == ',' && !comma) {
      comma = 1;
    } else if (*s >= '0' && *s <= '9' && digits[comma] < 3) {
      numbers[comma] = numbers[comma] * 10 + (*s - '0');
      digits[comma]++;
    } else {
      return 0;
    }
  }
  if (*s != '}' || (!digits[0] && !digits[1])) return 0;
  *least = numbers[0];
  *most = !comma ? numbers[0] : digits[1] ? numbers[1] : -1;
  if (*least > MOST_REPEAT || *most > MOST_REPEAT || (*most >= 0 && *most < *least)) p->bad = 1;
  p->at = s + 1;
  return 1;
}

/* Least to most times the code from begin on, which stands there once. */
static void repeat(program *p, int begin, int least, int most) {
  instruction once[MOST_CODE];
  const int length = p->length - begin;
  memcpy(once, p->code + begin, (size_t)length * sizeof *once);
  p->length = begin;
  for (int i = 0; i < (most < 0 ? least : most) && !p->bad; i++) {
    if (i >= least) emit(p, SPLIT, 0, length + 1); /* may be left out */
    for (int j = 0; j < length; j++) emit(p, (op)once[j].op, once[j].value, once[j].to);
  }
  if (most >= 0 || p->bad) return;
  emit(p, SPLIT, 0, length + 2);
  for (int j = 0; j < length; j++) emit(p, (op)once[j].op, once[j].value, once[j].to);
  emit(p, JUMP, 0, -(length + 1));
}

static void parse_item(program *p) {
  const int begin = p->length;
  const char c = *p->at++;
  switch (c) {
    case '(': parse_group(p); break;
    case '[': parse_class(p); break;
    case '\\': parse_escape(p); break;
    case '.': emit(p, ANY, 0, 0); break;
    case '^': emit(p, BEGIN, 0, 0); break;
    case '$': emit(p, END, 0, 0); break;
    case '*':
    case '+':
    case '?': p->bad = 1; break;
    default: emit(p, CHAR, (uint8_t)c, 0);
  }
  int least = 0, most = 0;
  if (p->bad) return;
  if (*p->at == '*' || *p->at == '+' || *p->at == '?') {
    least = *p->at == '+';
    most = *p->at == '?' ? 1 : -1;
    p->at++;
  } else if (*p->at != '{' || !parse_counts(p, &least, &most)) {
    return;
  }
  if (*p->at == '?') p->at++; /* the shortest match is a match, too */
  repeat(p, begin, least, most);
}

static void parse_choice(program *p) {
  const int begin = p->length;
  while (*p->at && *p->at != ')' && *p->at != '|' && !p->bad) parse_item(p);
  if (*p->at != '|' || p->bad) return;
  p->at++;
  insert(p, begin, SPLIT, 0, p->length - begin + 2);
  const int jump = p->length;
  emit(p, JUMP, 0, 0);
  if (++p->groups > MOST_GROUPS) p->bad = 1;
  if (!p->bad) parse_choice(p);
  p->groups--;
  if (!p->bad) p->code[jump].to = (int16_t)(p->length - jump);
}

/* NOLINTEND(misc-no-recursion) */

/* ---- program and text -> match ---- */

typedef struct states {
  int count;
  int16_t at[MOST_CODE];
  uint8_t in[MOST_CODE];
} states;

typedef struct run {
  const program *p;
  const char *text;
  int64_t *steps;
} run;

static int is_word(char c) { return is_alphanumeric(c) || c == '_'; }

/* A look ahead runs a program inside a program, MOST_LOOKS deep at most. */
/* NOLINTBEGIN(misc-no-recursion) */
static int accepts(const run *r, int begin, const char *at, int whole, int looks);

/* Whether an instruction that takes no character lets pass. */
static int passes(const run *r, int i, const char *at, int looks) {
  const instruction c = r->p->code[i];
  if (c.op == BEGIN) return at == r->text;
  if (c.op == END) return *at == 0 || (!c.value && at[0] == '\n' && at[1] == 0);
  if (c.op == LOOK) return looks < MOST_LOOKS ? accepts(r, i + 1, at, 0, looks + 1) != c.value : 0;
  return ((at > r->text && is_word(at[-1])) != is_word(*at)) != c.value; /* EDGE */
}

/* Adds a state and all that it reaches without a character. */
static void reach(const run *r, states *set, int first, const char *at, int looks) {
  int16_t waiting[2 * MOST_CODE];
  int count = 0;
  waiting[count++] = (int16_t)first;
  while (count > 0 && *r->steps > 0) {
    const int i = waiting[--count];
    if (set->in[i]) continue;
    set->in[i] = 1;
    --*r->steps;
    const instruction c = r->p->code[i];
    switch (c.op) {
      case SPLIT:
        waiting[count++] = (int16_t)(i + c.to);
        waiting[count++] = (int16_t)(i + 1);
        break;
      case JUMP: waiting[count++] = (int16_t)(i + c.to); break;
      case BEGIN:
      case END:
      case EDGE:
      case LOOK:
        if (passes(r, i, at, looks)) waiting[count++] = (int16_t)(c.op == LOOK ? i + c.to : i + 1);
        break;
      default: set->at[set->count++] = (int16_t)i;
    }
  }
}

static int takes(const program *p, instruction c, uint8_t character) {
  if (c.op == CHAR) return c.value == character;
  if (c.op == ANY) return character != '\n';
  return c.op == CLASS && (p->members[c.value][character / 32] >> character % 32 & 1);
}

static int accepts(const run *r, int begin, const char *at, int whole, int looks) {
  states sets[2], *now = &sets[0], *next = &sets[1];
  now->count = 0;
  memset(now->in, 0, (size_t)r->p->length);
  reach(r, now, begin, at, looks);
  for (;; at++) {
    next->count = 0;
    memset(next->in, 0, (size_t)r->p->length);
    for (int i = 0; i < now->count; i++) {
      const instruction c = r->p->code[now->at[i]];
      if (c.op == ACCEPT && (!whole || *at == 0)) return 1;
      if (*at && takes(r->p, c, (uint8_t)*at)) reach(r, next, now->at[i] + 1, at + 1, looks);
    }
    if (*at == 0 || next->count == 0 || *r->steps <= 0) return 0;
    states *other = now;
    now = next;
    next = other;
  }
}
/* NOLINTEND(misc-no-recursion) */

int lpgemm_i_pattern(const char *pattern, const char *text, lpg_pattern_mode mode, int64_t *steps) {
  program p = {.at = pattern};
  if (strlen(pattern) > 500) return -1;
  parse_choice(&p);
  emit(&p, ACCEPT, 0, 0);
  if (p.bad || *p.at) return -1;
  const run r = {&p, text, steps};
  int found = accepts(&r, 0, text, mode == LPG_PATTERN_WHOLE, 0);
  for (const char *at = text; mode == LPG_PATTERN_SEARCH && !found && *at && *steps > 0; at++) {
    found = accepts(&r, 0, at + 1, 0, 0);
  }
  *steps -= p.length;
  return *steps > 0 ? found : -2;
}
