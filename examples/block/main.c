/* A decoder block of Llama 3 8B with random weights of 4 and of 2 bits: a few tokens on the CPU, and where there is a
 * GPU a prefill and decode steps inside CUDA graphs, beside the same block on cuBLAS fp16. Read block.c first: it is
 * all that an engine needs of lpgemm. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "block.h"

static const char help[] =
    "usage: block [--hidden N] [--cpu]\n"
    "  --hidden N   a narrower block: a multiple of 512 up to 8192; 4096 is that of Llama 3 8B\n"
    "  --cpu        leave the GPU alone\n";

static block_shape shape_of(int64_t hidden) {
  return (block_shape){.hidden = hidden, .heads = hidden / HEAD, .kv_heads = hidden / HEAD / 4, .ffn = hidden / 2 * 7};
}

static int64_t parse_hidden(const char *text) {
  char *end;
  errno = 0;
  long long hidden = strtoll(text, &end, 10);
  if (errno || end == text || *end || hidden < 512 || hidden > 8192 || hidden % 512) {
    fail("--hidden %s: it is a multiple of 512, from 512 to 8192", text);
  }
  return hidden;
}

int main(int count, char **arguments) {
  int64_t hidden = 4096;
  int cuda = lpgemm_backend_available(LPGEMM_BACKEND_CUDA);
  for (int i = 1; i < count; i++) {
    if (!strcmp(arguments[i], "--help")) return fputs(help, stdout) < 0;
    if (!strcmp(arguments[i], "--cpu")) {
      cuda = 0;
    } else if (!strcmp(arguments[i], "--hidden") && i + 1 < count) {
      hidden = parse_hidden(arguments[++i]);
    } else {
      fail("%s: no such option\n%s", arguments[i], help);
    }
  }

  block_shape s = shape_of(hidden);
  printf("%s\n\none decoder block: hidden %lld, %lld heads and %lld of keys and values of %d, FFN %lld; groups of %d\n",
         lpgemm_build_info(), (long long)s.hidden, (long long)s.heads, (long long)s.kv_heads, HEAD, (long long)s.ffn,
         GROUP);
  for (int bits = 4; bits >= 2; bits -= 2) {
    float *outputs = run_cpu(&s, bits);
    if (cuda) run_cuda(&s, bits, outputs);
    free(outputs);
  }
  return 0;
}
