/* What the ranks of a run share: memory, a meeting point, and the sentence of the first one that failed. */
#ifndef BOARD_H
#define BOARD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { MOST_RANKS = 16, JOIN_BYTES = 128 };

typedef struct board board;

/* Zeroed memory that this process and those that it starts share. */
void *share(size_t bytes);
void share_end(void *memory, size_t bytes);

board *board_open(int ranks);
void board_close(board *b);
unsigned char *board_join(board *b); /* [JOIN_BYTES]: what the first rank tells the others before they join */

/* Starts the ranks and waits until all have ended. If one fails, is killed, or seconds have passed, all are ended.
 * NULL, or a sentence about the first failure. */
const char *board_run(board *b, int ranks, void (*work)(const void *context, int rank), const void *context,
                      double limit);

/* For ranks. A failure is on_failure(): it ends the rank with its sentence on the board. */
void meet(void);          /* returns when all ranks are here; ends the rank if another has failed */
int meet_for_sum(void);   /* the same for sums, which may be on a thread of their own: 0 if another has failed */
int another_failed(void); /* also if the program that started the ranks is gone */
void end_quietly(void) __attribute__((noreturn));

#ifdef __cplusplus
}
#endif

#endif
