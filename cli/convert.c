/* lpgemm-convert: a checkpoint to a container of packed matrices. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "convert.h"

const char cli_program[] = "lpgemm-convert";

static const char help[] =
    "usage: lpgemm-convert MODEL OUT.lpg [options]\n"
    "       lpgemm-convert --list MODEL [--json] [options]\n"
    "       lpgemm-convert --check MODEL OUT.lpg [options]\n"
    "\n"
    "Packs every quantised matrix of MODEL and writes them, with all other tensors as they are, into the container\n"
    "OUT.lpg, which lpgemm_file_open() maps. MODEL is a model folder, a .safetensors file, or a .gguf file (of split\n"
    "ones the first).\n"
    "  --list              what each layer is and becomes, or why it cannot be converted; writes nothing\n"
    "  --check             reads OUT.lpg again and compares every number with those of MODEL; give it the options\n"
    "                      that OUT.lpg was made with\n"
    "  --layer GLOB        only layers and tensors whose names fit, such as '*.layers.0.*'\n"
    "  --join LIST         qkv, gate-up, or qkv,gate-up: q, k and v, or gate and up, become one matrix where they can\n"
    "  --slice RANK/RANKS  the part of one rank of several, the first is 0/RANKS: q, k, v, gate, up and lm_head by\n"
    "                      rows, o and down by columns, experts likewise\n"
    "  --force             replaces OUT.lpg if it is there, and a container\n"
    "  --threads N         threads that pack; default: one a core\n"
    "  --json              prints the list, or what was done, as JSON\n"
    "  --help              this text\n"
    "\n"
    "Exit codes: 0 done, 1 failed, or --check found a difference, 2 wrong usage.\n";

static void read_join(convert_options *o, const char *text) {
  for (const char *s = text; *s;) {
    const size_t length = strcspn(s, ",");
    const int qkv = length == strlen("qkv") && strncmp(s, "qkv", length) == 0;
    const int gate_up = length == strlen("gate-up") && strncmp(s, "gate-up", length) == 0;
    if (!qkv && !gate_up) cli_usage("--join is '%s'; it must be qkv, gate-up, or both with a comma", text);
    o->join_qkv |= qkv;
    o->join_gate_up |= gate_up;
    s += length + (s[length] == ',');
  }
  if (!o->join_qkv && !o->join_gate_up) cli_usage("--join is empty; it must be qkv, gate-up, or both with a comma");
}

static void read_slice(convert_options *o, const char *text) {
  char rank[16] = "";
  const char *slash = strchr(text, '/');
  if (!slash || slash == text || slash - text >= (ptrdiff_t)sizeof rank) {
    cli_usage("--slice is '%s'; it must be RANK/RANKS, such as 0/2", text);
  }
  memcpy(rank, text, (size_t)(slash - text));
  o->ranks = (int)cli_number("RANKS of --slice", slash + 1, 1, 4096);
  o->rank = (int)cli_number("RANK of --slice", rank, 0, o->ranks - 1);
}

static void read_option(convert_options *o, cli_words *words) {
  const char *option = words->word[words->at];
  if (strcmp(option, "--help") == 0) {
    fputs(help, stdout);
    exit(cli_finish(CLI_OK));
  } else if (strcmp(option, "--list") == 0) {
    o->list = 1;
  } else if (strcmp(option, "--check") == 0) {
    o->check = 1;
  } else if (strcmp(option, "--json") == 0) {
    o->json = 1;
  } else if (strcmp(option, "--force") == 0) {
    o->force = 1;
  } else if (strcmp(option, "--layer") == 0) {
    o->pattern = cli_next(words, option, "a pattern of names, such as '*.layers.0.*'");
  } else if (strcmp(option, "--join") == 0) {
    read_join(o, cli_next(words, option, "qkv, gate-up, or both with a comma"));
  } else if (strcmp(option, "--slice") == 0) {
    read_slice(o, cli_next(words, option, "RANK/RANKS, such as 0/2"));
  } else if (strcmp(option, "--threads") == 0) {
    o->threads = (int)cli_number(option, cli_next(words, option, "a number"), 1, 1024);
  } else if (option[0] == '-') {
    cli_usage("'%s' is no option", option);
  } else if (!o->model) {
    o->model = option;
  } else if (!o->out) {
    o->out = option;
  } else {
    cli_usage("'%s' is one word too many; MODEL and OUT.lpg are there already", option);
  }
}

static void read_options(int argc, char **argv, convert_options *o) {
  memset(o, 0, sizeof *o);
  for (cli_words words = {argv, argc, 1}; words.at < argc; words.at++) read_option(o, &words);
  if (o->list && o->check) cli_usage("--list and --check exclude each other");
  if (!o->model) cli_usage("MODEL is missing: a folder, a .safetensors or a .gguf file");
  if (o->list && o->out) cli_usage("--list writes nothing: '%s' is one word too many", o->out);
  if (!o->list && !o->out) cli_usage("OUT.lpg is missing");
  if (o->force && (o->list || o->check)) cli_usage("--force is for writing");
}

int main(int argc, char **argv) {
  convert_options o;
  convert_plan plan;
  read_options(argc, argv, &o);
  convert_make_plan(&o, &plan);
  const int code = o.list ? convert_show_list(&plan) : o.check ? convert_check(&plan) : convert_write(&plan);
  convert_free_plan(&plan);
  return cli_finish(code);
}
