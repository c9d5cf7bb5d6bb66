/* lpgemm-info: what this build contains, what this machine can run, and which kernel a product would take. */
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layer.h"
#include "measured.h"

const char cli_program[] = "lpgemm-info";

static const char help[] =
    "usage: lpgemm-info [--json] [--backend cpu|cuda]\n"
    "       lpgemm-info --kernels [PATTERN] [--json] [--backend cpu|cuda]\n"
    "       lpgemm-info --explain N K TYPE M [--all] [options]\n"
    "       lpgemm-info --supports N K TYPE M [options]\n"
    "\n"
    "Without an option: the version, the backends and devices that can be used here, kernels by family.\n"
    "  --kernels           names of kernels; PATTERN is a part of them, or matches them if it has * ? [\n"
    "  --explain           the kernel for N x K weights of TYPE (u4, i8, b2, e2m1, nf4, ...) by M rows, how it is\n"
    "                      launched, the others that could do it, and why the rest cannot\n"
    "  --all               a line for each kernel, also for those that cannot do it\n"
    "  --supports          whether there is one; the exit code is 0 if so, else 1\n"
    "  --json              the same as JSON\n"
    "  --backend cpu|cuda  this backend only; for --explain and --supports the default is CUDA where there is a GPU\n"
    "  --help              this text\n"
    "and for --explain and --supports\n" CLI_LAYER_HELP
    "\n"
    "Exit codes: 0 done, 1 failed, or no kernel can do it, 2 wrong usage.\n";

typedef enum command { SUMMARY, KERNELS, EXPLAIN, SUPPORTS } command;

typedef struct options {
  command command;
  const char *named; /* the option that said so */
  const char *pattern;
  lpgemm_backend_t backend;
  int json, all;
  int layered; /* an option that only --explain and --supports have */
  int64_t n, k, m;
  cli_layer layer;
} options;

/* ---- the command line ---- */

static void set_command(options *o, command command, const char *named) {
  if (o->named) cli_usage("%s and %s exclude each other", o->named, named);
  o->command = command;
  o->named = named;
}

static void read_product(options *o, cli_words *words, const char *option) {
  static const char right[] = "four values, N K TYPE M, such as 4096 4096 u4 16";
  o->n = cli_number("N", cli_next(words, option, right), 1, CLI_MAX_SIZE);
  o->k = cli_number("K", cli_next(words, option, right), 1, CLI_MAX_SIZE);
  cli_layer_weights(&o->layer, "TYPE", cli_next(words, option, right));
  o->m = cli_number("M", cli_next(words, option, right), 0, INT32_MAX);
}

static void read_option(options *o, cli_words *words) {
  const char *option = words->word[words->at];
  if (strcmp(option, "--help") == 0) {
    fputs(help, stdout);
    exit(cli_finish(CLI_OK));
  } else if (strcmp(option, "--json") == 0) {
    o->json = 1;
  } else if (strcmp(option, "--all") == 0) {
    o->all = 1;
  } else if (strcmp(option, "--backend") == 0) {
    o->backend = cli_backend(cli_next(words, option, "cpu or cuda"));
  } else if (strcmp(option, "--kernels") == 0) {
    set_command(o, KERNELS, option);
    int more = words->at + 1 < words->count && words->word[words->at + 1][0] != '-';
    if (more) o->pattern = words->word[++words->at];
  } else if (strcmp(option, "--explain") == 0 || strcmp(option, "--supports") == 0) {
    set_command(o, option[2] == 'e' ? EXPLAIN : SUPPORTS, option);
    read_product(o, words, option);
  } else if (cli_layer_option(&o->layer, words)) {
    o->layered = 1;
  } else {
    cli_usage("'%s' is no option", option);
  }
}

static void read_options(int argc, char **argv, options *o) {
  memset(o, 0, sizeof *o);
  cli_layer_start(&o->layer);
  for (cli_words words = {argv, argc, 1}; words.at < argc; words.at++) read_option(o, &words);
  int has_layer = o->command == EXPLAIN || o->command == SUPPORTS;
  if (o->layered && !has_layer) cli_usage("options of a layer, such as --group, need --explain or --supports");
  if (o->all && o->command != EXPLAIN) cli_usage("--all needs --explain");
  if (has_layer) cli_layer_finish(&o->layer);
}

/* ---- kernels ---- */

typedef struct kernels {
  lpgemm_kernel_info_t *list; /* those of the backend that was asked for */
  size_t count;
} kernels;

static kernels list_kernels(lpgemm_backend_t backend) {
  kernels all = {NULL, 0};
  size_t count, kept = 0;
  cli_check(lpgemm_list_kernels(NULL, 0, &count));
  all.list = cli_allocate(count * sizeof *all.list);
  for (size_t i = 0; i < count; i++) all.list[i].size = sizeof *all.list;
  cli_check(lpgemm_list_kernels(all.list, count, &count));
  for (size_t i = 0; i < count; i++) {
    if (backend == LPGEMM_BACKEND_AUTO || all.list[i].backend == backend) all.list[kept++] = all.list[i];
  }
  all.count = kept;
  return all;
}

static int fits(const char *name, const char *pattern) {
  if (!pattern) return 1;
  return strpbrk(pattern, "*?[") ? fnmatch(pattern, name, 0) == 0 : strstr(name, pattern) != NULL;
}

static int show_kernels(const options *o) {
  kernels all = list_kernels(o->backend);
  size_t shown = 0;
  if (o->json) printf("{\"kernels\": [");
  for (size_t i = 0; i < all.count; i++) {
    const lpgemm_kernel_info_t *kernel = &all.list[i];
    if (!fits(kernel->name, o->pattern)) continue;
    if (o->json) {
      printf("%s\n  {\"name\": \"%s\", \"family\": \"%s\", \"backend\": \"%s\", \"arch\": %d, \"usable\": %s}",
             shown ? "," : "", kernel->name, kernel->family, cli_backend_name(kernel->backend), (int)kernel->arch,
             kernel->available ? "true" : "false");
    } else {
      printf("%s%s\n", kernel->name, kernel->available ? "" : " (not on this machine)");
    }
    shown++;
  }
  if (o->json) printf("\n]}\n");
  free(all.list);
  if (shown == 0 && o->pattern) cli_fail("no name of a kernel fits '%s'; --kernels alone lists them all", o->pattern);
  return CLI_OK;
}

/* ---- the summary ---- */

/* 1 with the name of the device, or 0 with the reason why the backend cannot be used. */
static int find_device(lpgemm_backend_t backend, char text[CLI_DEVICE_BYTES]) {
  lpgemm_config_t config = {.size = sizeof config, .backend = backend};
  lpgemm_handle_t handle;
  if (lpgemm_create(&handle, &config) != LPGEMM_SUCCESS) {
    snprintf(text, CLI_DEVICE_BYTES, "%s", lpgemm_last_error());
    return 0;
  }
  snprintf(text, CLI_DEVICE_BYTES, "%s", lpgemm_device_name(handle));
  cli_check(lpgemm_destroy(handle));
  return 1;
}

static int show_backends(const options *o) {
  int usable = 0, shown = 0;
  for (int b = LPGEMM_BACKEND_CPU; b <= LPGEMM_BACKEND_CUDA; b++) {
    if (o->backend != LPGEMM_BACKEND_AUTO && o->backend != (lpgemm_backend_t)b) continue;
    char text[CLI_DEVICE_BYTES];
    const char *name = cli_backend_name((lpgemm_backend_t)b);
    int found = find_device((lpgemm_backend_t)b, text);
    usable += found;
    if (o->json) {
      printf("%s\n  {\"backend\": \"%s\", \"usable\": %s, \"%s\": ", shown++ ? "," : "", name, found ? "true" : "false",
             found ? "device" : "reason");
      cli_json_text(text);
      putchar('}');
    } else {
      printf("%-5s %s%s\n", name, found ? "" : "cannot be used here: ", text);
    }
  }
  return usable;
}

/* Kernels of a family stand together in the registry. */
static void show_families(const options *o) {
  kernels all = list_kernels(o->backend);
  if (!o->json) printf("%-12s %-8s %8s %12s\n", "family", "backend", "kernels", "usable here");
  for (size_t i = 0, end; i < all.count; i = end) {
    const lpgemm_kernel_info_t *first = &all.list[i];
    int usable = 0;
    for (end = i;
         end < all.count && strcmp(all.list[end].family, first->family) == 0 && all.list[end].backend == first->backend;
         end++) {
      usable += all.list[end].available;
    }
    const char *format = o->json ? "%s\n  {\"family\": \"%s\", \"backend\": \"%s\", \"kernels\": %zu, \"usable\": %d}"
                                 : "%s%-12s %-8s %8zu %12d\n";
    printf(format, o->json && i ? "," : "", first->family, cli_backend_name(first->backend), end - i, usable);
  }
  free(all.list);
}

static int show_summary(const options *o) {
  int version = lpgemm_version();
  if (o->json) {
    printf("{\"version\": \"%d.%d.%d\", \"build\": ", version / 10000, version / 100 % 100, version % 100);
    cli_json_text(lpgemm_build_info());
    printf(", \"backends\": [");
  } else {
    printf("%s\n\n", lpgemm_build_info());
  }
  int usable = show_backends(o);
  printf(o->json ? "\n], \"families\": [" : "\n");
  show_families(o);
  if (o->json) printf("\n]}\n");
  return usable ? CLI_OK : CLI_FAILED;
}

/* ---- explain and supports ---- */

static void start_product(const options *o, lpgemm_handle_t handle) {
  printf("{\"backend\": \"%s\", \"n\": %lld, \"k\": %lld, \"m\": %lld, ", cli_backend_name(lpgemm_get_backend(handle)),
         (long long)o->n, (long long)o->k, (long long)o->m);
  cli_layer_json(&o->layer);
}

/* Cuts a line in two where its last ": " is; the second part. */
static char *cut_last(char *line) {
  char *last = line + strlen(line);
  for (char *next = line; (next = strstr(next, ": ")); next++) last = next;
  if (!*last) return last;
  *last = 0;
  return last + 2;
}

static void print_says(const char *kernel, const char *says) {
  printf("\"kernel\": ");
  cli_json_text(kernel);
  printf(", \"says\": ");
  cli_json_text(says);
}

/* "NAME: what about it", or "none: why"; "  plan: ..." and the like, which belong to the line before; and for kernels
 * that share a reason "not possible, REASON: N kernels, NAME ...". */
static void print_line(char *line, int is_first) {
  if (*line == ' ') {
    char *word = line + strspn(line, " "), *colon = strstr(word, ": ");
    if (!colon) return;
    printf(", \"%.*s\": ", (int)(colon - word), word);
    cli_json_text(colon + 2);
    return;
  }
  printf("%s\n  {", is_first ? "" : "},");
  if (strncmp(line, "not possible, ", strlen("not possible, ")) == 0) {
    char name[64] = "";
    int count = 0;
    sscanf(cut_last(line), "%d %*s %63s", &count, name);
    print_says(name, line);
    printf(", \"kernels\": %d", count);
  } else {
    char *colon = strstr(line, ": ");
    if (colon) *colon = 0;
    print_says(strcmp(line, "none") == 0 ? NULL : line, colon ? colon + 2 : "");
  }
}

static void print_lines(const options *o, lpgemm_handle_t handle, size_t workspace, char *text) {
  start_product(o, handle);
  printf(", \"workspace_bytes\": %zu, \"lines\": [", workspace);
  int is_first = 1;
  for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"), is_first = 0) print_line(line, is_first);
  printf("}\n]}\n");
}

/* Puts a line for each kernel that cannot do it in the place of one for each reason. */
static void name_all(lpgemm_handle_t handle, lpgemm_run_args_t args, char *text, size_t bytes) {
  const char *device = lpgemm_device_name(handle);
  kernels all = list_kernels(lpgemm_get_backend(handle));
  char *reasons = strstr(text, "\nnot possible, "); /* they come last */
  if (reasons) reasons[1] = 0;
  size_t used = strlen(text);
  for (size_t i = 0; i < all.count; i++) {
    char first[256];
    args.kernel = all.list[i].name;
    const lpgemm_status_t status = lpgemm_explain(handle, &args, first, sizeof first);
    if (status == LPGEMM_SUCCESS) continue; /* it is possible and has its line */
    if (status != LPGEMM_NOT_SUPPORTED) cli_check(status);
    const char *reason = lpgemm_last_error(), *at = strstr(reason, device); /* "... on DEVICE: REASON" */
    if (at) reason = at + strlen(device) + strlen(": ");
    used += (size_t)snprintf(text + used, bytes - used, "%s: not possible, %s\n", args.kernel, reason);
  }
  free(all.list);
}

static int explain(const options *o) {
  enum { LINE_BYTES = 1024 };
  lpgemm_handle_t handle = cli_open(o->backend);
  lpgemm_weights_t weights = cli_layer_make(&o->layer, handle, o->n, o->k);
  lpgemm_run_args_t args = cli_layer_args(&o->layer, weights, o->m);
  size_t workspace = 0, count;
  cli_check(lpgemm_list_kernels(NULL, 0, &count));
  size_t bytes = (count + 4) * LINE_BYTES; /* and the chosen one's plan and time */
  char *text = cli_allocate(bytes);
  lpgemm_status_t status = cli_layer_explain(handle, &args, &workspace, text, bytes);
  if (status / 10 == 1) cli_check(status);
  if (!text[0]) {
    snprintf(text, bytes, "none: %s\n", lpgemm_last_error());
  } else if (o->all) {
    name_all(handle, args, text, bytes);
  }
  if (o->json) {
    print_lines(o, handle, workspace, text);
  } else {
    printf("%s", text);
    if (workspace) printf("(with the %zu bytes that lpgemm_workspace_size() asks for)\n", workspace);
  }
  free(text);
  cli_check(lpgemm_weights_destroy(weights));
  cli_check(lpgemm_destroy(handle));
  return status == LPGEMM_SUCCESS ? CLI_OK : CLI_FAILED;
}

static int supports(const options *o) {
  lpgemm_handle_t handle = cli_open(o->backend);
  lpgemm_weight_desc_t desc = o->layer.desc;
  desc.n = o->n;
  desc.k = o->k;
  lpgemm_status_t status = lpgemm_supports(handle, &desc, o->layer.x_type, o->layer.y_type, o->m);
  int good = status == LPGEMM_SUCCESS;
  if (status / 10 == 1) cli_check(status);
  if (o->json) {
    start_product(o, handle);
    printf(", \"supported\": %s, \"reason\": ", good ? "true" : "false");
    cli_json_text(good ? NULL : lpgemm_last_error());
    printf("}\n");
  } else {
    printf("%s%s\n", good ? "supported" : "not supported: ", good ? "" : lpgemm_last_error());
  }
  cli_check(lpgemm_destroy(handle));
  return good ? CLI_OK : CLI_FAILED;
}

static int do_command(const options *o) {
  switch (o->command) {
    case KERNELS: return show_kernels(o);
    case EXPLAIN: return explain(o);
    case SUPPORTS: return supports(o);
    default: return show_summary(o);
  }
}

int main(int argc, char **argv) {
  options o;
  read_options(argc, argv, &o);
  return cli_finish(do_command(&o));
}
