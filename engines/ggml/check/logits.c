/* logits MODEL REFERENCE: how far the logits of a model are from those of another, which is the same in fp32: the
 * squared error by the squared reference, over a prompt and tokens that are decoded one by one. Prints that number
 * alone. */
#include <llama.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROMPT = 48, DECODED = 16, TOKENS = PROMPT + DECODED };

static void fail(const char *what, const char *which) {
  fprintf(stderr, "logits: %s: %s\n", which, what);
  exit(1);
}

static void only_errors(enum ggml_log_level level, const char *text, void *unused) {
  (void)unused;
  if (level == GGML_LOG_LEVEL_ERROR) fputs(text, stderr);
}

static llama_token token_of(int i, int words) { return (llama_token)((i * 7919 + 13) % words); }

/* Logits of all tokens: [TOKENS][*words]. */
static float *run(const char *path, int *words) {
  struct llama_model_params params = llama_model_default_params();
  struct llama_model *model = llama_model_load_from_file(path, params);
  if (!model) fail("cannot be loaded", path);
  struct llama_context_params options = llama_context_default_params();
  options.n_ctx = 2 * TOKENS;
  options.n_batch = options.n_ubatch = TOKENS;
  options.n_threads = options.n_threads_batch = 2;
  options.type_k = options.type_v = GGML_TYPE_F32; /* no rounding but that of the products */
  options.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
  struct llama_context *context = llama_init_from_model(model, options);
  if (!context) fail("no context", path);
  *words = llama_vocab_n_tokens(llama_model_get_vocab(model));
  float *logits = malloc((size_t)TOKENS * (size_t)*words * sizeof *logits);
  for (int at = 0; at < TOKENS;) {
    const int count = at == 0 ? PROMPT : 1;
    struct llama_batch batch = llama_batch_init(count, 0, 1);
    batch.n_tokens = count;
    for (int i = 0; i < count; i++) {
      batch.token[i] = token_of(at + i, *words);
      batch.pos[i] = at + i;
      batch.n_seq_id[i] = 1;
      batch.seq_id[i][0] = 0;
      batch.logits[i] = 1;
    }
    if (llama_decode(context, batch) != 0) fail("decoding failed", path);
    memcpy(logits + (size_t)at * (size_t)*words, llama_get_logits(context),
           (size_t)count * (size_t)*words * sizeof *logits);
    llama_batch_free(batch);
    at += count;
  }
  llama_free(context);
  llama_model_free(model);
  return logits;
}

/* NaN comes last. */
static int in_order(const void *left, const void *right) {
  const double a = *(const double *)left, b = *(const double *)right;
  return a < b ? -1 : b < a ? 1 : isnan(a) - isnan(b);
}

int main(int argc, char **argv) {
  if (argc != 3) fail("arguments are MODEL REFERENCE", "usage");
  llama_log_set(only_errors, NULL);
  ggml_backend_load_all();
  int words, expected_words;
  float *logits = run(argv[1], &words), *expected = run(argv[2], &expected_words);
  if (words != expected_words) fail("has another number of words", argv[2]);
  double error[TOKENS];
  for (int t = 0; t < TOKENS; t++) {
    double squares = 0, errors = 0;
    for (size_t i = (size_t)t * (size_t)words; i < (size_t)(t + 1) * (size_t)words; i++) {
      const double off = (double)logits[i] - (double)expected[i];
      errors += off * off;
      squares += (double)expected[i] * (double)expected[i];
    }
    error[t] = errors / squares;
  }
  qsort(error, TOKENS, sizeof *error, in_order);
  printf("%.3e\n", (error[TOKENS / 2 - 1] + error[TOKENS / 2]) / 2);
  free(logits);
  free(expected);
  return 0;
}
