/* logits MODEL REFERENCE: how far the logits of a model are from those of another, which is the same in fp32: the
 * squared error by the squared reference of each token, over a prompt and tokens that are decoded one by one. Prints the
 * median over tokens; the mean over those for which every router of the model chose the experts that it chose in the
 * reference; the mean over all; and how many tokens went to other experts, of how many. */
#include <llama.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROMPT = 48, DECODED = 16, TOKENS = PROMPT + DECODED, CHOICES = 64 };

/* What a model gave: logits [TOKENS][words], and the experts of each token, those of a layer in ascending order. */
typedef struct answer {
  float *logits;
  int words, first; /* the token that the batch begins with */
  int32_t experts[TOKENS][CHOICES];
  int chosen[TOKENS];
} answer;

static void fail(const char *what, const char *which) {
  fprintf(stderr, "logits: %s: %s\n", which, what);
  exit(1);
}

static void only_errors(enum ggml_log_level level, const char *text, void *unused) {
  (void)unused;
  if (level == GGML_LOG_LEVEL_ERROR) fputs(text, stderr);
}

static llama_token token_of(int i, int words) { return (llama_token)((i * 7919 + 13) % words); }

static int ascending(const void *left, const void *right) {
  const int32_t a = *(const int32_t *)left, b = *(const int32_t *)right;
  return (a > b) - (a < b);
}

/* llama.cpp's scheduler asks which tensors are wanted, then shows them. */
static bool see(struct ggml_tensor *t, bool ask, void *context) {
  answer *to = context;
  const bool wanted = strncmp(t->name, "ffn_moe_topk-", strlen("ffn_moe_topk-")) == 0;
  if (ask || !wanted) return wanted;
  for (int64_t token = 0; token < t->ne[1]; token++) {
    const int at = to->first + (int)token, used = (int)t->ne[0];
    if (to->chosen[at] + used > CHOICES) fail("has too many experts", t->name);
    int32_t *ids = to->experts[at] + to->chosen[at];
    memcpy(ids, (const char *)t->data + (size_t)token * t->nb[1], (size_t)used * sizeof *ids);
    qsort(ids, (size_t)used, sizeof *ids, ascending);
    to->chosen[at] += used;
  }
  return true;
}

static void run(const char *path, answer *to) {
  struct llama_model_params params = llama_model_default_params();
  struct llama_model *model = llama_model_load_from_file(path, params);
  if (!model) fail("cannot be loaded", path);
  struct llama_context_params options = llama_context_default_params();
  options.n_ctx = 2 * TOKENS;
  options.n_batch = options.n_ubatch = TOKENS;
  options.n_threads = options.n_threads_batch = 2;
  options.type_k = options.type_v = GGML_TYPE_F32; /* no rounding but that of the products */
  options.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
  options.cb_eval = see;
  options.cb_eval_user_data = to;
  struct llama_context *context = llama_init_from_model(model, options);
  if (!context) fail("no context", path);
  to->words = llama_vocab_n_tokens(llama_model_get_vocab(model));
  memset(to->chosen, 0, sizeof to->chosen);
  to->logits = malloc((size_t)TOKENS * (size_t)to->words * sizeof *to->logits);
  for (int at = 0; at < TOKENS;) {
    const int count = at == 0 ? PROMPT : 1;
    struct llama_batch batch = llama_batch_init(count, 0, 1);
    batch.n_tokens = count;
    for (int i = 0; i < count; i++) {
      batch.token[i] = token_of(at + i, to->words);
      batch.pos[i] = at + i;
      batch.n_seq_id[i] = 1;
      batch.seq_id[i][0] = 0;
      batch.logits[i] = 1;
    }
    to->first = at;
    if (llama_decode(context, batch) != 0) fail("decoding failed", path);
    memcpy(to->logits + (size_t)at * (size_t)to->words, llama_get_logits(context),
           (size_t)count * (size_t)to->words * sizeof *to->logits);
    llama_batch_free(batch);
    at += count;
  }
  llama_free(context);
  llama_model_free(model);
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
  static answer given, expected;
  run(argv[1], &given);
  run(argv[2], &expected);
  if (given.words != expected.words) fail("has another number of words", argv[2]);
  double error[TOKENS], sum = 0, sum_of_same = 0;
  int moved = 0;
  for (int t = 0; t < TOKENS; t++) {
    double squares = 0, errors = 0;
    for (size_t i = (size_t)t * (size_t)given.words; i < (size_t)(t + 1) * (size_t)given.words; i++) {
      const double off = (double)given.logits[i] - (double)expected.logits[i];
      errors += off * off;
      squares += (double)expected.logits[i] * (double)expected.logits[i];
    }
    error[t] = errors / squares;
    if (given.chosen[t] != expected.chosen[t]) fail("has another number of experts", argv[2]);
    const bool same =
        memcmp(given.experts[t], expected.experts[t], (size_t)given.chosen[t] * sizeof **given.experts) == 0;
    sum += error[t];
    sum_of_same += same ? error[t] : 0;
    moved += !same;
  }
  qsort(error, TOKENS, sizeof *error, in_order);
  printf("%.3e %.3e %.3e %d of %d\n", (error[TOKENS / 2 - 1] + error[TOKENS / 2]) / 2, sum_of_same / (TOKENS - moved),
         sum / TOKENS, moved, TOKENS);
  free(given.logits);
  free(expected.logits);
  return 0;
}
