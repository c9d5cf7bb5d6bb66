/* A program that multiplies with its own lpgemm and with those of the plugins PATH..., each of which has a function
 * `product`: all at once in one process, with every symbol in sight of every plugin. */
#include <dlfcn.h>
#include <stdio.h>

int product(void); /* consumer.c */

static int run(void *plugin) {
  int (*run_product)(void);
  *(void **)&run_product = dlsym(plugin, "product");
  return run_product ? run_product() : 1;
}

int main(int argc, char **argv) {
  enum { MOST = 8 };
  void *plugins[MOST];
  int wrong = product();
  if (argc > MOST) return 2;
  for (int i = 1; i < argc; i++) {
    plugins[i] = dlopen(argv[i], RTLD_NOW | RTLD_GLOBAL);
    if (!plugins[i]) {
      fprintf(stderr, "%s\n", dlerror());
      return 1;
    }
    if (dlsym(plugins[i], "lpgemm_run")) {
      fprintf(stderr, "%s shows its lpgemm_run\n", argv[i]);
      wrong = 1;
    }
  }
  for (int turn = 0; turn < 2; turn++) {
    for (int i = 1; i < argc; i++) wrong |= run(plugins[i]);
  }
  for (int i = 1; i < argc; i++) {
    wrong |= dlclose(plugins[i]); /* the others go on */
    for (int j = i + 1; j < argc; j++) wrong |= run(plugins[j]);
  }
  return wrong | product();
}
