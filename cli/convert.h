/* What the files of lpgemm-convert share. A model is a list of layers, which the library finds; a plan is what OUT
 * shall have of it: packed matrices, each of one layer or several, and tensors that are copied. Layers of a plan are
 * looked at again when they are needed, so that models of a hundred thousand experts take little memory. */
#ifndef CLI_CONVERT_H
#define CLI_CONVERT_H

#include "common.h"

typedef struct convert_options {
  const char *model, *out;
  const char *pattern; /* of names, for --layer; NULL: all */
  int list, check, json, force;
  int join_qkv, join_gate_up;
  int rank, ranks; /* ranks 0: whole matrices */
  int threads;     /* 0: one a core */
} convert_options;

/* ---- names of layers in published models: convert_names.c ---- */

/* How a layer is shared among ranks. */
typedef enum convert_cut {
  CUT_UNKNOWN,    /* by nothing that the name says: whole in every rank */
  CUT_WHOLE,      /* known to be whole in every rank */
  CUT_HEADS,      /* rows, by heads; q */
  CUT_KV_HEADS,   /* the same by heads of k and v */
  CUT_ROWS,       /* rows, as its partner's columns are cut; gate, up */
  CUT_VOCABULARY, /* rows; lm_head */
  CUT_QKV,        /* rows of q, k and v one under the other */
  CUT_HALVES,     /* rows of gate and up one under the other, or taking turns */
  CUT_EVEN,       /* columns; o: evenly, as heads are */
  CUT_COLUMNS,    /* columns; down */
} convert_cut;

enum { CONVERT_MOST_JOINED = 3, CONVERT_NAME = 1200 };

/* Where a name has its last word: "blk.0.", "ffn_gate_exps", ".3" of "blk.0.ffn_gate_exps.3". */
typedef struct convert_name {
  const char *name, *leaf, *tail;
  size_t leaf_length;
} convert_name;

convert_name convert_split(const char *name);

/* The cut of a layer, and the names that its partner, which has as many columns as it has rows, may have instead of
 * its own: words with a blank between; NULL: none. */
convert_cut convert_cut_of(const convert_name *name, const char **partners);

/* 1 if rows of this matrix are looked up, not multiplied. */
int convert_is_embedding(const char *name);

/* Layers that are one product where the first stands: leaves of the parts, and of the whole. */
typedef struct convert_join {
  int is_qkv, count;
  const char *part[CONVERT_MOST_JOINED], *joined;
} convert_join;

/* The join that this is a part of; NULL: none that the options ask for. */
const convert_join *convert_join_of(const convert_options *o, const convert_name *name);

/* The name with another leaf, in a buffer of CONVERT_NAME bytes. */
const char *convert_rename(const convert_name *name, const char *leaf, size_t length, char *text);

/* ---- the plan: convert_plan.c ---- */

typedef struct convert_layer {
  const char *name;
  uint64_t bytes; /* of its tensors in the file; of a stack, the expert's share */
  int taken;      /* it is in the plan */
} convert_layer;

typedef struct convert_job {
  const char *name; /* in OUT */
  uint32_t count;   /* layers that it is made of; 0: tensor number `tensor` is copied */
  uint32_t layer[CONVERT_MOST_JOINED];
  uint32_t tensor;
  uint64_t bytes; /* of the file */
} convert_job;

typedef struct convert_plan {
  const convert_options *options;
  lpgemm_file_t file;
  convert_layer *layers;
  convert_layer **by_name; /* sorted */
  size_t layer_count;
  convert_job *jobs;
  size_t job_count, job_room;
  char **notes; /* sentences about what could not be as it was asked for */
  size_t note_count, note_room;
  uint64_t bytes; /* of all jobs, in the file */
} convert_plan;

void convert_make_plan(const convert_options *o, convert_plan *plan);
void convert_free_plan(convert_plan *plan);
const convert_layer *convert_find_layer(const convert_plan *plan, const char *name);
void convert_note(convert_plan *plan, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- what a job becomes: convert_parts.c ---- */

enum { CONVERT_MOST_PARTS = 2 * CONVERT_MOST_JOINED };

typedef struct convert_parts {
  lpgemm_import_t part[CONVERT_MOST_PARTS];
  size_t count;
  lpgemm_weight_desc_t desc;
  size_t bytes;   /* packed */
  int whole;      /* with --slice: it is not cut, for its name does not say how */
  char why[1200]; /* why it cannot be imported */
} convert_parts;

/* 1, or 0 with `why`. */
int convert_resolve(const convert_plan *plan, const convert_job *job, convert_parts *parts);

/* ---- words: convert_words.c ---- */

enum { CONVERT_WORDS = 200 };
const char *convert_format_words(const lpgemm_import_t *import, char *text);  /* "GPTQ", "GGUF q4_k" */
const char *convert_desc_words(const lpgemm_weight_desc_t *desc, char *text); /* "u4 g128 f16, zeros u8" */
const char *convert_size_words(uint64_t bytes, char *text);                   /* "4.66 GB" */

/* ---- progress: convert_progress.c ---- */

typedef struct convert_progress {
  uint64_t total, done;
  double start, shown; /* seconds */
  int visible;
} convert_progress;

double convert_now(void);
void convert_progress_start(convert_progress *p, uint64_t total);
void convert_progress_add(convert_progress *p, uint64_t bytes);
void convert_progress_end(convert_progress *p); /* clears the line */

/* ---- interruption: convert_write.c ---- */

void convert_catch_signals(void);
int convert_interrupted(void);

/* ---- commands ---- */

int convert_show_list(convert_plan *plan); /* convert_list.c */
int convert_write(convert_plan *plan);     /* convert_write.c */
int convert_check(convert_plan *plan);     /* convert_check.c */

#endif
