/* Status texts, the thread's last sentence, the version. */
#include "status.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char last_error[640];

int lpgemm_version(void) { return LPGEMM_VERSION; }

const char *lpgemm_status_string(lpgemm_status_t status) {
  switch (status) {
    case LPGEMM_SUCCESS: return "LPGEMM_SUCCESS: success";
    case LPGEMM_INVALID_ARGUMENT: return "LPGEMM_INVALID_ARGUMENT: an argument is outside its domain";
    case LPGEMM_NULL_POINTER: return "LPGEMM_NULL_POINTER: a pointer that is needed is NULL";
    case LPGEMM_INVALID_TYPE: return "LPGEMM_INVALID_TYPE: not a number format, or not one that fits here";
    case LPGEMM_INVALID_HANDLE: return "LPGEMM_INVALID_HANDLE: not a live handle or not live weights";
    case LPGEMM_INVALID_STRUCT: return "LPGEMM_INVALID_STRUCT: wrong struct size, or a reserved field is not zero";
    case LPGEMM_INVALID_CODE: return "LPGEMM_INVALID_CODE: a code that its type cannot hold";
    case LPGEMM_NOT_SUPPORTED: return "LPGEMM_NOT_SUPPORTED: no kernel of this build does it";
    case LPGEMM_NO_BACKEND: return "LPGEMM_NO_BACKEND: the backend is not in this build or has no device here";
    case LPGEMM_WRONG_DEVICE: return "LPGEMM_WRONG_DEVICE: weights and handle live on different devices";
    case LPGEMM_INVALID_SIZE: return "LPGEMM_INVALID_SIZE: a negative size or a leading dimension that is too small";
    case LPGEMM_SIZE_OVERFLOW: return "LPGEMM_SIZE_OVERFLOW: a product of sizes, or an int32 sum, is too large";
    case LPGEMM_MISALIGNED: return "LPGEMM_MISALIGNED: a pointer without the alignment that is needed";
    case LPGEMM_BUFFER_TOO_SMALL: return "LPGEMM_BUFFER_TOO_SMALL: a buffer has fewer bytes than needed";
    case LPGEMM_WORKSPACE_TOO_SMALL: return "LPGEMM_WORKSPACE_TOO_SMALL: the bound workspace is too small";
    case LPGEMM_CUDA_ERROR: return "LPGEMM_CUDA_ERROR: the CUDA runtime failed";
    case LPGEMM_CORRUPT_DATA: return "LPGEMM_CORRUPT_DATA: not a packed matrix, or a damaged one";
    case LPGEMM_VERSION_MISMATCH: return "LPGEMM_VERSION_MISMATCH: written by another version";
    case LPGEMM_LAYOUT_MISMATCH: return "LPGEMM_LAYOUT_MISMATCH: a layout that this build has no kernel for";
    case LPGEMM_OUT_OF_MEMORY: return "LPGEMM_OUT_OF_MEMORY: out of memory";
    case LPGEMM_IO_ERROR: return "LPGEMM_IO_ERROR: a file cannot be opened, read or written";
    case LPGEMM_INTERNAL_ERROR: return "LPGEMM_INTERNAL_ERROR: a defect of the library";
  }
  return "not a status of lpgemm";
}

const char *lpgemm_last_error(void) { return last_error; }

lpgemm_status_t lpgemm_i_fail(lpgemm_status_t status, const char *file, int line, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(last_error, sizeof last_error, format, args);
  va_end(args);
  lpgemm_i_log(LPGEMM_LOG_ERROR, "%s:%d: status %d: %s", file, line, (int)status, last_error);
  return status;
}
