#include "nccl.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* NCCL's own types and values, as far as they are needed here. Its C interface has been stable since version 2.4. */
typedef struct nccl_comm *nccl_comm;
typedef struct {
  char bytes[JOIN_BYTES];
} nccl_id; /* is passed by value */
enum { NCCL_FLOAT16 = 6, NCCL_FLOAT32 = 7, NCCL_SUM = 0, NCCL_SUCCESS = 0, NCCL_IN_PROGRESS = 7 };

static int (*get_version)(int *version);
static int (*get_id)(nccl_id *id);
static int (*init_rank)(nccl_comm *comm, int ranks, nccl_id id, int rank);
static int (*all_reduce)(const void *from, void *to, size_t count, int type, int operation, nccl_comm comm,
                         cudaStream_t stream);
static int (*get_async_error)(nccl_comm comm, int *state);
static int (*abort_comm)(nccl_comm comm);
static int (*destroy)(nccl_comm comm);
static const char *(*error_string)(int result);

static nccl_comm comm;

static void try(int result, const char *what) {
  if (result != NCCL_SUCCESS) fail("%s: %s", what, error_string(result));
}

static void *open_library(const char *path) {
  const char *names[] = {path, path ? NULL : "libnccl.so.2", path ? NULL : "libnccl.so"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    void *library = names[i] ? dlopen(names[i], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (library) return library;
  }
  fail("%s, which adds up over GPUs, cannot be loaded (%s): --nccl FILE says where it is, --sum host does without it",
       path ? path : "libnccl.so.2", dlerror());
}

static void find(void *library, const char *name, void *function) {
  void *address = dlsym(library, name);
  if (!address) fail("NCCL has no %s", name);
  memcpy(function, &address, sizeof address); /* ISO C has no cast from an object's pointer to a function's */
}

void nccl_open(const char *path, const rank *r) {
  void *library = open_library(path);
  find(library, "ncclGetVersion", &get_version);
  find(library, "ncclGetUniqueId", &get_id);
  find(library, "ncclCommInitRank", &init_rank);
  find(library, "ncclAllReduce", &all_reduce);
  find(library, "ncclCommGetAsyncError", &get_async_error);
  find(library, "ncclCommAbort", &abort_comm);
  find(library, "ncclCommDestroy", &destroy);
  find(library, "ncclGetErrorString", &error_string);

  nccl_id id;
  unsigned char *join = board_join(r->job->board);
  if (r->index == 0) {
    try(get_id(&id), "ncclGetUniqueId");
    memcpy(join, &id, sizeof id);
  }
  fail_here(r, FAIL_JOIN);
  meet(); /* who does not come here fails; who fails from here on is seen by the program that started the ranks */
  memcpy(&id, join, sizeof id);
  try(init_rank(&comm, r->job->ranks, id, r->index), "ncclCommInitRank");
}

void nccl_version(char *text, size_t bytes) {
  int version;
  try(get_version(&version), "ncclGetVersion");
  snprintf(text, bytes, "NCCL %d.%d.%d", version / 10000, version / 100 % 100, version % 100);
}

void nccl_sum(void *x, int64_t count, lpgemm_dtype_t type, cudaStream_t stream) {
  int nccl_type = type == LPGEMM_F16 ? NCCL_FLOAT16 : NCCL_FLOAT32;
  try(all_reduce(x, x, (size_t)count, nccl_type, NCCL_SUM, comm, stream), "ncclAllReduce");
}

void nccl_check(void) {
  int state;
  if (!comm || get_async_error(comm, &state) != NCCL_SUCCESS) return;
  if (state != NCCL_SUCCESS && state != NCCL_IN_PROGRESS) fail("NCCL: %s", error_string(state));
}

void nccl_abort(void) {
  if (comm) abort_comm(comm);
}

void nccl_close(void) {
  try(destroy(comm), "ncclCommDestroy");
  comm = NULL;
}
