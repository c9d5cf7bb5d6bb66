/* speed MODEL THREADS: the time of a prompt of 256 tokens and of a token that is decoded after it, each by CPU time of
 * the process and by wall time, in seconds and the least of several. Prints these four numbers. */
#include <llama.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PROMPT = 256, DECODED = 16, AT_ONCE = 4, ROUNDS = 4 };

typedef struct seconds {
  double cpu, wall;
} seconds;

static void fail(const char *what) {
  fprintf(stderr, "speed: %s\n", what);
  exit(1);
}

static void only_errors(enum ggml_log_level level, const char *text, void *unused) {
  (void)unused;
  if (level == GGML_LOG_LEVEL_ERROR) fputs(text, stderr);
}

static double read_clock(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static seconds now(void) { return (seconds){read_clock(CLOCK_PROCESS_CPUTIME_ID), read_clock(CLOCK_MONOTONIC)}; }

static void decode(struct llama_context *context, llama_token *tokens, int count) {
  if (llama_decode(context, llama_batch_get_one(tokens, count)) != 0) fail("decoding failed");
  llama_synchronize(context);
}

/* Keeps the least of `best` and what has passed since `start`, by `parts`. */
static void keep(seconds *best, seconds start, int parts) {
  const seconds end = now();
  best->cpu = fmin(best->cpu, (end.cpu - start.cpu) / parts);
  best->wall = fmin(best->wall, (end.wall - start.wall) / parts);
}

int main(int argc, char **argv) {
  if (argc != 3 || atoi(argv[2]) < 1) fail("arguments are MODEL THREADS");
  llama_log_set(only_errors, NULL);
  ggml_backend_load_all();
  struct llama_model *model = llama_model_load_from_file(argv[1], llama_model_default_params());
  if (!model) fail("the model cannot be loaded");
  struct llama_context_params options = llama_context_default_params();
  options.n_ctx = 2 * PROMPT;
  options.n_batch = options.n_ubatch = PROMPT;
  options.n_threads = options.n_threads_batch = atoi(argv[2]);
  struct llama_context *context = llama_init_from_model(model, options);
  if (!context) fail("no context");
  const int words = llama_vocab_n_tokens(llama_model_get_vocab(model));
  llama_token tokens[PROMPT];
  for (int i = 0; i < PROMPT; i++) tokens[i] = (llama_token)((i * 7919 + 13) % words);
  seconds prompt = {HUGE_VAL, HUGE_VAL}, token = {HUGE_VAL, HUGE_VAL};
  for (int round = 0; round < ROUNDS; round++) {
    llama_memory_clear(llama_get_memory(context), true);
    seconds start = now();
    decode(context, tokens, PROMPT);
    keep(&prompt, start, 1);
    for (int i = 0; i < DECODED; i += AT_ONCE) {
      start = now();
      for (int j = 0; j < AT_ONCE; j++) decode(context, tokens + i + j, 1);
      keep(&token, start, AT_ONCE);
    }
  }
  printf("%.6g %.6g %.6g %.6g\n", prompt.cpu, prompt.wall, token.cpu, token.wall);
  llama_free(context);
  llama_model_free(model);
  return 0;
}
