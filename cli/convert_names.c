/* Names of layers in published models: which are joined, how they are shared among ranks. Hugging Face's names, those
 * of Mixtral's experts and of Meta's own files (w1 is gate, w3 up, w2 down), and GGUF's. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "convert.h"

/* ---- a name and its last word ---- */

static int is_number(const char *text, size_t length) {
  for (size_t i = 0; i < length; i++) {
    if (!isdigit((unsigned char)text[i])) return 0;
  }
  return length > 0;
}

convert_name convert_split(const char *name) {
  const char *end = name + strlen(name), *leaf = end;
  while (leaf > name && leaf[-1] != '.') leaf--;
  if (is_number(leaf, (size_t)(end - leaf)) && leaf > name + 1) { /* an expert of a stack */
    end = leaf - 1;
    for (leaf = end; leaf > name && leaf[-1] != '.';) leaf--;
  }
  return (convert_name){name, leaf, end, (size_t)(end - leaf)};
}

const char *convert_rename(const convert_name *name, const char *leaf, size_t length, char *text) {
  snprintf(text, CONVERT_NAME, "%.*s%.*s%s", (int)(name->leaf - name->name), name->name, (int)length, leaf, name->tail);
  return text;
}

static int leaf_is(const convert_name *name, const char *leaf) {
  return strlen(leaf) == name->leaf_length && strncmp(leaf, name->leaf, name->leaf_length) == 0;
}

/* ---- ranks ---- */

static const struct {
  const char *leaf;
  convert_cut cut;
  const char *partners;
} cuts[] = {
    {"q_proj", CUT_HEADS, NULL},
    {"k_proj", CUT_KV_HEADS, NULL},
    {"v_proj", CUT_KV_HEADS, NULL},
    {"o_proj", CUT_EVEN, NULL},
    {"out_proj", CUT_EVEN, NULL},
    {"qkv_proj", CUT_QKV, "o_proj out_proj"},
    {"Wqkv", CUT_QKV, "out_proj o_proj"},
    {"W_pack", CUT_QKV, "o_proj"},
    {"gate_proj", CUT_ROWS, "down_proj"},
    {"up_proj", CUT_ROWS, "down_proj"},
    {"gate_up_proj", CUT_HALVES, "down_proj"},
    {"down_proj", CUT_COLUMNS, NULL},
    {"fc1", CUT_ROWS, "fc2"},
    {"fc2", CUT_COLUMNS, NULL},
    {"w1", CUT_ROWS, "w2"},
    {"w3", CUT_ROWS, "w2"},
    {"w2", CUT_COLUMNS, NULL},
    {"wq", CUT_HEADS, NULL},
    {"wk", CUT_KV_HEADS, NULL},
    {"wv", CUT_KV_HEADS, NULL},
    {"wo", CUT_EVEN, NULL},
    {"lm_head", CUT_VOCABULARY, NULL},
    /* DeepSeek's low-rank projections: down to the rank whole, up from it by heads */
    {"q_a_proj", CUT_WHOLE, NULL},
    {"kv_a_proj_with_mqa", CUT_WHOLE, NULL},
    {"q_b_proj", CUT_HEADS, NULL},
    {"kv_b_proj", CUT_HEADS, NULL},
    /* GGUF */
    {"attn_q", CUT_HEADS, NULL},
    {"attn_k", CUT_KV_HEADS, NULL},
    {"attn_v", CUT_KV_HEADS, NULL},
    {"attn_qkv", CUT_QKV, "attn_output"},
    {"attn_output", CUT_EVEN, NULL},
    {"attn_q_a", CUT_WHOLE, NULL},
    {"attn_kv_a_mqa", CUT_WHOLE, NULL},
    {"attn_q_b", CUT_HEADS, NULL},
    {"attn_kv_b", CUT_HEADS, NULL},
    {"ffn_gate", CUT_ROWS, "ffn_down"},
    {"ffn_up", CUT_ROWS, "ffn_down"},
    {"ffn_down", CUT_COLUMNS, NULL},
    {"ffn_gate_exps", CUT_ROWS, "ffn_down_exps"},
    {"ffn_up_exps", CUT_ROWS, "ffn_down_exps"},
    {"ffn_gate_up_exps", CUT_HALVES, "ffn_down_exps"},
    {"ffn_down_exps", CUT_COLUMNS, NULL},
    {"ffn_gate_shexp", CUT_ROWS, "ffn_down_shexp"},
    {"ffn_up_shexp", CUT_ROWS, "ffn_down_shexp"},
    {"ffn_down_shexp", CUT_COLUMNS, NULL},
    {"ffn_gate_inp", CUT_WHOLE, NULL},
};

convert_cut convert_cut_of(const convert_name *name, const char **partners) {
  *partners = NULL;
  if (strcmp(name->name, "output") == 0) return CUT_VOCABULARY; /* GGUF's lm_head */
  for (size_t i = 0; i < CLI_COUNT(cuts); i++) {
    if (!leaf_is(name, cuts[i].leaf)) continue;
    *partners = cuts[i].partners;
    return cuts[i].cut;
  }
  return CUT_UNKNOWN;
}

int convert_is_embedding(const char *name) {
  static const char *const leaves[] = {"token_embd", "per_layer_token_embd", "position_embd", "token_types",
                                       "embed_tokens"};
  const convert_name split = convert_split(name);
  for (size_t i = 0; i < CLI_COUNT(leaves); i++) {
    if (leaf_is(&split, leaves[i])) return 1;
  }
  return 0;
}

/* ---- joins ---- */

static const convert_join joins[] = {
    {1, 3, {"q_proj", "k_proj", "v_proj"}, "qkv_proj"},
    {1, 3, {"attn_q", "attn_k", "attn_v"}, "attn_qkv"},
    {1, 3, {"wq", "wk", "wv"}, "wqkv"},
    {0, 2, {"gate_proj", "up_proj", NULL}, "gate_up_proj"},
    {0, 2, {"w1", "w3", NULL}, "w13"},
    {0, 2, {"ffn_gate", "ffn_up", NULL}, "ffn_gate_up"},
    {0, 2, {"ffn_gate_exps", "ffn_up_exps", NULL}, "ffn_gate_up_exps"},
    {0, 2, {"ffn_gate_shexp", "ffn_up_shexp", NULL}, "ffn_gate_up_shexp"},
};

const convert_join *convert_join_of(const convert_options *o, const convert_name *name) {
  for (size_t i = 0; i < CLI_COUNT(joins); i++) {
    const int wanted = joins[i].is_qkv ? o->join_qkv : o->join_gate_up;
    for (int part = 0; wanted && part < joins[i].count; part++) {
      if (leaf_is(name, joins[i].part[part])) return &joins[i];
    }
  }
  return NULL;
}
