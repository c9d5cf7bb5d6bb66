/* examples/parallel as a user starts it, its ranks as processes on the CPU. What it compares it fails for itself, and a
 * run that has ended has ended all ranks: they hold the pipe that is read to its end here. */
#include "program.h"
#include "test.h"

#define COUNT(array) (int)(sizeof(array) / sizeof(array)[0])

static void run_ranks(int ranks, const char *options, int want, const char *part) {
  char command[512];
  snprintf(command, sizeof command, "examples/parallel --backend cpu --ranks %d %s", ranks, options);
  program_check(command, want, part);
}

/* The sixteen digits behind the sentence about bits; "" if it is not there. */
static void find_hash(char hash[17]) {
  static const char sentence[] = "have the same bits: ";
  const char *at = strstr(program_output, sentence);
  snprintf(hash, 17, "%s", at ? at + strlen(sentence) : "");
}

/* The model `small` has 4 heads of keys and values and 7 groups of the FFN: parts of unequal size, and with 8 ranks
 * some without any. */
static void check_ranks(void) {
  for (int ranks = 1; ranks <= 8; ranks++) {
    if (!test_case("parallel/ranks/%d", ranks)) continue;
    run_ranks(ranks, ranks == 2 ? "--checks --rows 1,8,64" : "--checks --rows 1,8", 0, "in the whole, bit for bit");
    CHECK(strstr(program_output, "outputs within the bound of fp64"));
    CHECK(strstr(program_output, "one rank against sums in fp64: "));
    CHECK(strstr(program_output, "16 steps"));
    CHECK(strstr(program_output, "experts of one rank against fp64: "));
    CHECK(strstr(program_output, "experts, tensor parallel, against one rank: 1 row "));
    CHECK(strstr(program_output, "experts, expert parallel, against one rank: 1 row "));
  }
  if (test_case("parallel/bits")) {
    char first[17], second[17];
    run_ranks(3, "--checks --rows 5 --bits 2", 0, "u2 in groups");
    find_hash(first);
    run_ranks(3, "--checks --rows 5 --bits 2", 0, "u2 in groups");
    find_hash(second);
    CHECK_INT(strlen(first), 16);
    CHECK(!strcmp(first, second));
    run_ranks(3, "--checks --rows 5 --bits 8", 0, "u8 in groups");
    find_hash(second);
    CHECK(strcmp(first, second));
  }
}

enum { HEAD_LINES = 3 }; /* of a run that starts: the build, the block, the experts */

/* One sentence, which names the rank. */
static void check_failures(void) {
  static const char *const places[] = {"open", "join", "rows", "steps", "experts"};
  char options[128];
  for (int i = 0; i < COUNT(places); i++) {
    if (!test_case("parallel/fails/%s", places[i])) continue;
    snprintf(options, sizeof options, "--checks --rows 1 --fail-rank 2 --fail-at %s", places[i]);
    run_ranks(3, options, 1, "rank 2 of 3: it was told to fail\n");
    CHECK_INT(program_lines(""), HEAD_LINES + 1);
    snprintf(options, sizeof options, "--checks --rows 1 --fail-rank 0 --fail-at %s --fail-how kill", places[i]);
    run_ranks(3, options, 1, "rank 0 of 3: it was ended by signal 9");
    CHECK_INT(program_lines(""), HEAD_LINES + 1);
  }
  if (test_case("parallel/fails/wrong")) { /* what the checks of the program are for */
    run_ranks(3, "--checks --rows 4 --fail-rank 1 --fail-how wrong --fail-at open", 1,
              "of its part of o is not what a rank alone has there\n");
    run_ranks(3, "--checks --rows 4 --fail-rank 1 --fail-how wrong --fail-at rows", 1, "outputs differ by ");
    run_ranks(3, "--checks --rows 4 --fail-rank 1 --fail-how wrong --fail-at steps", 1,
              "outputs of rank 1 differ from those of rank 0\n");
    run_ranks(3, "--checks --rows 4 --fail-rank 1 --fail-how wrong --fail-at experts", 1, "experts differ by ");
  }
  if (test_case("parallel/fails/hangs")) {
    run_ranks(2, "--checks --rows 1 --limit 5 --fail-rank 1 --fail-at steps --fail-how hang", 1,
              "the ranks did not finish within 5 s\n");
    CHECK_INT(program_lines(""), HEAD_LINES + 1);
  }
}

static void check_arguments(void) {
  static const char *const wrong[] = {"--ranks 0",       "--ranks 17",   "--ranks x", "--model gpt",
                                      "--rows 8,1",      "--rows 513",   "--rows ,",  "--backend tpu",
                                      "--bits 9",        "--sum gloo",   "--limit 0", "--fail-rank 2",
                                      "--fail-at night", "--nonsense 1", "--record",  "--checks --record x"};
  if (test_case("parallel/arguments")) {
    for (int i = 0; i < COUNT(wrong); i++) {
      char command[128];
      snprintf(command, sizeof command, "examples/parallel --backend cpu %s", wrong[i]);
      CHECK_INT(program_run(command, 1), 2);
      CHECK_INT(program_lines(""), 1);
    }
    program_check("examples/parallel --help", 0, "usage: parallel");
    run_ranks(1, "--rows 1 --record /nowhere/record", 1, "cannot write /nowhere/record");
  }
  if (test_case("parallel/record")) {
    program_check_json("examples/parallel --backend cpu --ranks 2 --rows 1,2 --record /dev/fd/3 3>&1 >/dev/null", 0,
                       "parallel/small/u4/m2/block/all_reduce");
    CHECK(strstr(program_output, "\"void\": \"ranks on one CPU share its memory\""));
    CHECK(strstr(program_output, "parallel/small/u4/m1/experts_tensor/products"));
    CHECK(strstr(program_output, "parallel/small/u4/m2/experts_expert/all_reduce"));
  }
}

void suite_parallel(void) {
  check_ranks();
  check_failures();
  check_arguments();
}
