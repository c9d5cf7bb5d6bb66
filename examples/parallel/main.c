/* A decoder block on several ranks: outputs beside those of one rank, the same bits every time, and times. The program
 * itself touches no GPU: its ranks do. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parallel.h"

static const char help[] =
    "usage: parallel [--ranks N] [--model NAME] [options]\n"
    "  --ranks N            1 to 16 processes, each with its part of the block; default 2\n"
    "  --model NAME         llama3-70b, llama3-8b, mixtral-8x7b or small; default small. The last two\n"
    "                       have a layer of experts too\n"
    "  --backend cpu|cuda   default: cuda if this build has it\n"
    "  --bits N             of the weights, 1 to 8; default 4\n"
    "  --rows N,N,...       ascending, up to 512; default 1,8,64,512\n"
    "  --checks             no times\n"
    "  --record FILE        the times as JSON\n"
    "  --sum nccl|host      how ranks add up; default: nccl if each has a GPU of its own\n"
    "  --nccl FILE          where libnccl.so.2 is, if the loader does not find it\n"
    "  --limit SECONDS      after which the ranks are ended; default 300\n"
    "  --fail-rank R --fail-at open|join|rows|steps|experts [--fail-how error|kill|hang|wrong]\n"
    "                       to see what happens then\n";

/* ---- what is asked for ---- */

typedef struct model {
  const char *name;
  block_shape shape;
  int32_t experts, top_k;
  int64_t inter;
} model;

static const model models[] = {
    {"llama3-70b", {.hidden = 8192, .heads = 64, .kv_heads = 8, .ffn = 28672}},
    {"llama3-8b", {.hidden = 4096, .heads = 32, .kv_heads = 8, .ffn = 14336}},
    {"mixtral-8x7b", {.hidden = 4096, .heads = 32, .kv_heads = 8, .ffn = 14336}, 8, 2, 14336},
    /* 7 and 3 groups, 5 experts: parts of unequal size */
    {"small", {.hidden = 512, .heads = 8, .kv_heads = 4, .ffn = 896}, 5, 2, 384},
};

/* A wrong option: exit code 2. */
static void refuse(const char *option, const char *value, const char *right) {
  fprintf(stderr, "%s %s: %s\n", option, value, right);
  exit(2);
}

static long long parse_number(const char *option, const char *text, long long least, long long most) {
  char *end, right[64];
  errno = 0;
  long long number = strtoll(text, &end, 10);
  if (errno || end == text || *end || number < least || number > most) {
    snprintf(right, sizeof right, "it is a number from %lld to %lld", least, most);
    refuse(option, text, right);
  }
  return number;
}

/* The place of a word in "one|two|three". */
static int parse_word(const char *option, const char *text, const char *words) {
  char right[128];
  const char *at = words;
  size_t length = strlen(text);
  for (int i = 0;; i++) {
    size_t word = strcspn(at, "|");
    if (word == length && !strncmp(at, text, word)) return i;
    if (!at[word]) break;
    at += word + 1;
  }
  snprintf(right, sizeof right, "it is one of %s", words);
  refuse(option, text, right);
  return 0;
}

static void parse_rows(options *o, const char *text) {
  char list[256], *rest = list;
  snprintf(list, sizeof list, "%s", text);
  o->row_counts = 0;
  for (char *word; (word = strtok_r(rest, ",", &rest));) {
    int64_t rows = parse_number("--rows", word, 1, 512);
    if (o->row_counts == MOST_ROW_COUNTS || (o->row_counts > 0 && rows <= most_rows(o))) {
      refuse("--rows", text, "they are ascending, and at most 8");
    }
    o->rows[o->row_counts++] = rows;
  }
  if (o->row_counts == 0) refuse("--rows", text, "it is a list of numbers");
}

static void parse_model(options *o, const char *name) {
  for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
    if (!strcmp(models[i].name, name)) {
      o->model = name;
      o->shape = models[i].shape;
      o->experts = models[i].experts;
      o->top_k = models[i].top_k;
      o->inter = models[i].inter;
      return;
    }
  }
  refuse("--model", name, "it is one of llama3-70b, llama3-8b, mixtral-8x7b, small");
}

static void parse_option(options *o, const char *option, const char *value) {
  if (!strcmp(option, "--ranks")) {
    o->ranks = (int)parse_number(option, value, 1, MOST_RANKS);
  } else if (!strcmp(option, "--model")) {
    parse_model(o, value);
  } else if (!strcmp(option, "--backend")) {
    o->backend = parse_word(option, value, "cpu|cuda") ? LPGEMM_BACKEND_CUDA : LPGEMM_BACKEND_CPU;
  } else if (!strcmp(option, "--bits")) {
    o->bits = (int)parse_number(option, value, 1, 8);
  } else if (!strcmp(option, "--rows")) {
    parse_rows(o, value);
  } else if (!strcmp(option, "--record")) {
    o->record = value;
  } else if (!strcmp(option, "--sum")) {
    o->host_sum = parse_word(option, value, "nccl|host");
  } else if (!strcmp(option, "--nccl")) {
    o->nccl = value;
  } else if (!strcmp(option, "--limit")) {
    o->limit = (double)parse_number(option, value, 1, 86400);
  } else if (!strcmp(option, "--fail-rank")) {
    o->fail_rank = (int)parse_number(option, value, 0, MOST_RANKS - 1);
  } else if (!strcmp(option, "--fail-at")) {
    o->fail_at = (fail_place)(FAIL_OPEN + parse_word(option, value, "open|join|rows|steps|experts"));
  } else if (!strcmp(option, "--fail-how")) {
    o->fail_how = (fail_manner)parse_word(option, value, "error|kill|hang|wrong");
  } else {
    refuse(option, value, "no such option; --help lists them");
  }
}

#ifdef LPG_HAVE_CUDA
enum { HAVE_CUDA = 1 };
#else
enum { HAVE_CUDA = 0 };
#endif

static options parse(int count, char **arguments) {
  options o = {.ranks = 2, .bits = 4, .limit = 300.0, .fail_rank = -1};
  o.backend = HAVE_CUDA ? LPGEMM_BACKEND_CUDA : LPGEMM_BACKEND_CPU;
  parse_model(&o, "small");
  parse_rows(&o, "1,8,64,512");
  for (int i = 1; i < count; i++) {
    if (!strcmp(arguments[i], "--help")) {
      fputs(help, stdout);
      exit(0);
    }
    if (!strcmp(arguments[i], "--checks")) {
      o.checks_only = 1;
    } else if (i + 1 < count) {
      parse_option(&o, arguments[i], arguments[i + 1]);
      i++;
    } else {
      refuse(arguments[i], "", "no such option, or it needs a value; --help lists them");
    }
  }
  if (o.backend == LPGEMM_BACKEND_CUDA && !HAVE_CUDA) refuse("--backend", "cuda", "this build has no CUDA");
  if (o.fail_rank >= o.ranks) refuse("--fail-rank", "", "there is no such rank");
  if (o.record && o.checks_only) refuse("--record", o.record, "with --checks there are no times to record");
  return o;
}

/* ---- three runs ---- */

static void *share_numbers(size_t count, size_t bytes) { return share(count * bytes); }

/* Ends the program with the sentence of the rank that failed first. */
static void run(job *j) {
  const options *o = j->o;
  j->board = board_open(j->ranks);
  j->report = share((size_t)j->ranks * sizeof *j->report);
  j->outputs = share_numbers((size_t)(all_rows(o) * o->shape.hidden), sizeof(float));
  j->partial = share_numbers(partial_numbers(o), sizeof(double));
  j->slot_bytes = (size_t)(most_rows(o) * o->shape.hidden) * sizeof(float);
  j->slots = share_numbers(2 * (size_t)j->ranks, j->slot_bytes);
  const char *failure = board_run(j->board, j->ranks, run_rank, j, o->limit);
  if (failure) fail("%s", failure);
  share_end(j->slots, 2 * (size_t)j->ranks * j->slot_bytes);
  share_end(j->partial, partial_numbers(o) * sizeof(double));
  board_close(j->board);
}

int main(int count, char **arguments) {
  options o = parse(count, arguments);
  int64_t weights = (o.shape.heads + o.shape.kv_heads) * 2 * HEAD * o.shape.hidden + 3 * o.shape.ffn * o.shape.hidden;
  printf(
      "%s\n\none decoder block of %s: hidden %lld, %lld heads and %lld of keys and values of %d, FFN %lld; u%d in "
      "groups of %d; %d rank%s\n",
      lpgemm_build_info(), o.model, (long long)o.shape.hidden, (long long)o.shape.heads, (long long)o.shape.kv_heads,
      HEAD, (long long)o.shape.ffn, o.bits, GROUP, o.ranks, o.ranks > 1 ? "s" : "");
  if (o.experts > 0) {
    printf("and a layer of %d experts, %d for a token, of %lld\n", o.experts, o.top_k, (long long)o.inter);
  }

  job alone = {.o = &o, .ranks = 1, .timed = !o.checks_only, .writes_exact = 1, .copies = 1};
  if (o.backend == LPGEMM_BACKEND_CUDA) {
    alone.copies = (int)(COLD_BYTES / ((double)weights * o.bits / 8.0 / o.ranks)) + 1;
    if (alone.copies > MOST_COPIES) alone.copies = MOST_COPIES;
  }
  alone.exact = share_numbers((size_t)exact_numbers(&o), sizeof(float));
  job all = alone;
  all.ranks = o.ranks;
  all.writes_exact = 0;
  job again = all;
  again.timed = 0;
  run(&alone);
  run(&all);
  run(&again);

  const report *r = &all.report[0];
  if (*r->device) {
    printf("%s; %d GPU%s%s%s%s\n", r->device, r->gpus, r->gpus > 1 ? "s" : "", r->shares ? ", the first is shared" : "",
           *r->sum ? "; sums by " : "", r->sum);
  }
  print_checks(&alone, &all, &again);
  if (!o.checks_only) print_times(&alone, &all);
  if (o.record) write_record(&alone, &all);
  return 0;
}
