/* Hostile checkpoint files: the shapes of known attacks on readers of GGUF and safetensors, and then some. Each is
 * refused with one sentence that names the file. */
#include <ctype.h>
#include <sys/stat.h>

#include "checkpoints.h"
#include "files/files.h"
#include "files/json.h"
#include "test.h"

/* Refused with that status and a sentence with that word in it; frees *b. */
static void refused(const char *what, buffer *b, lpgemm_status_t want, const char *word) {
  lpgemm_file_t file = NULL;
  /* exactly as large as it is, so that sanitizers see a byte too many */
  uint8_t *exact = malloc(b->size ? b->size : 1);
  if (b->size) memcpy(exact, b->bytes, b->size);
  const lpgemm_status_t got = lpgemm_file_parse(exact, b->size, &file);
  const char *sentence = lpgemm_last_error();
  if (got != want || file || !strstr(sentence, word) || !strstr(sentence, "the file in memory")) {
    test_fail(__FILE__, __LINE__, "%s: %s (%s), not %s with \"%s\"", what, lpgemm_status_string(got), sentence,
              lpgemm_status_string(want), word);
  }
  for (const char *c = sentence; *c; c++) CHECK(!iscntrl((unsigned char)*c));
  lpgemm_file_close(file);
  free(exact);
  buffer_free(b);
}

/* ---- safetensors ---- */

#define ENTRY(name, dtype, shape, offsets) \
  "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static void headers(void) {
  static const struct {
    const char *what, *header;
    size_t data;
    lpgemm_status_t status;
    const char *word;
  } cases[] = {
      {"product wraps to 0", "{" ENTRY("a", "F32", "[4294967296,4294967296]", "[0,0]") "}", 0, LPGEMM_SIZE_OVERFLOW,
       "addressed"},
      {"product wraps to a little", "{" ENTRY("a", "U8", "[4294967297,4294967297,1]", "[0,1]") "}", 1,
       LPGEMM_SIZE_OVERFLOW, "addressed"},
      {"folded dimensions wrap", "{" ENTRY("a", "U8", "[4294967296,4294967296,1,1,1,1]", "[0,0]") "}", 0,
       LPGEMM_SIZE_OVERFLOW, "addressed"},
      {"bits wrap", "{" ENTRY("a", "F64", "[72057594037927936]", "[0,0]") "}", 0, LPGEMM_CORRUPT_DATA, "make"},
      {"shape larger than bytes", "{" ENTRY("a", "F32", "[16]", "[0,32]") "}", 32, LPGEMM_CORRUPT_DATA, "make 64"},
      {"shape smaller than bytes", "{" ENTRY("a", "F32", "[4]", "[0,32]") "}", 32, LPGEMM_CORRUPT_DATA, "make 16"},
      {"half bytes", "{" ENTRY("a", "F4", "[3]", "[0,2]") "}", 2, LPGEMM_CORRUPT_DATA, "whole bytes"},
      {"beyond the end", "{" ENTRY("a", "U8", "[8]", "[4,12]") "}", 8, LPGEMM_CORRUPT_DATA, "fetch"},
      {"backwards", "{" ENTRY("a", "U8", "[0]", "[8,4]") "}", 8, LPGEMM_CORRUPT_DATA, "lies at"},
      {"negative offset", "{" ENTRY("a", "U8", "[4]", "[-4,0]") "}", 8, LPGEMM_CORRUPT_DATA, "data_offsets"},
      {"offset of 2^63", "{" ENTRY("a", "U8", "[4]", "[0,9223372036854775808]") "}", 8, LPGEMM_CORRUPT_DATA,
       "data_offsets"},
      {"offset of 2^64 + 4", "{" ENTRY("a", "U8", "[4]", "[0,18446744073709551620]") "}", 8, LPGEMM_CORRUPT_DATA,
       "data_offsets"},
      {"one offset", "{" ENTRY("a", "U8", "[4]", "[0]") "}", 4, LPGEMM_CORRUPT_DATA, "data_offsets"},
      {"three offsets", "{" ENTRY("a", "U8", "[4]", "[0,4,4]") "}", 4, LPGEMM_CORRUPT_DATA, "data_offsets"},
      {"fractional shape", "{" ENTRY("a", "U8", "[4.0]", "[0,4]") "}", 4, LPGEMM_CORRUPT_DATA, "integer"},
      {"shape with exponent", "{" ENTRY("a", "U8", "[4e0]", "[0,4]") "}", 4, LPGEMM_CORRUPT_DATA, "integer"},
      {"negative shape", "{" ENTRY("a", "U8", "[-4]", "[0,4]") "}", 4, LPGEMM_CORRUPT_DATA, "integer"},
      {"no shape", "{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,4]}}", 4, LPGEMM_CORRUPT_DATA, "shape"},
      {"no dtype", "{\"a\":{\"shape\":[4],\"data_offsets\":[0,4]}}", 4, LPGEMM_CORRUPT_DATA, "dtype"},
      {"unknown dtype", "{" ENTRY("a", "F12", "[4]", "[0,4]") "}", 4, LPGEMM_NOT_SUPPORTED, "F12"},
      {"dtype with an escape", "{" ENTRY("a", "\\u001b[2J", "[4]", "[0,4]") "}", 4, LPGEMM_NOT_SUPPORTED, "?[2J"},
      {"dtype twice", "{\"a\":{\"dtype\":\"U8\",\"dtype\":\"I8\",\"shape\":[4],\"data_offsets\":[0,4]}}", 4,
       LPGEMM_CORRUPT_DATA, "twice"},
      {"no object", "{\"a\":3}", 0, LPGEMM_CORRUPT_DATA, "no object"},
      {"overlap", "{" ENTRY("a", "U8", "[6]", "[0,6]") "," ENTRY("b", "U8", "[4]", "[4,8]") "}", 8, LPGEMM_CORRUPT_DATA,
       "inside another"},
      {"same bytes", "{" ENTRY("a", "U8", "[8]", "[0,8]") "," ENTRY("b", "I8", "[8]", "[0,8]") "}", 8,
       LPGEMM_CORRUPT_DATA, "inside another"},
      {"empty inside another", "{" ENTRY("a", "U8", "[8]", "[0,8]") "," ENTRY("b", "I8", "[0]", "[4,4]") "}", 8,
       LPGEMM_CORRUPT_DATA, "none"},
      {"gap", "{" ENTRY("a", "U8", "[4]", "[0,4]") "," ENTRY("b", "U8", "[2]", "[6,8]") "}", 8, LPGEMM_CORRUPT_DATA,
       "gaps"},
      {"bytes before", "{" ENTRY("a", "U8", "[4]", "[4,8]") "}", 8, LPGEMM_CORRUPT_DATA, "gaps"},
      {"bytes after", "{" ENTRY("a", "U8", "[4]", "[0,4]") "}", 8, LPGEMM_CORRUPT_DATA, "last 4 bytes"},
      {"bytes of nobody", "{}", 8, LPGEMM_CORRUPT_DATA, "last 8 bytes"},
      {"name twice", "{" ENTRY("a", "U8", "[4]", "[0,4]") "," ENTRY("a", "U8", "[4]", "[4,8]") "}", 8,
       LPGEMM_CORRUPT_DATA, "unique"},
      {"name twice, escaped", "{" ENTRY("a", "U8", "[4]", "[0,4]") "," ENTRY("\\u0061", "U8", "[4]", "[4,8]") "}", 8,
       LPGEMM_CORRUPT_DATA, "unique"},
      {"empty name", "{" ENTRY("", "U8", "[4]", "[0,4]") "}", 4, LPGEMM_CORRUPT_DATA, "0 bytes"},
      {"0 in a name", "{" ENTRY("a\\u0000b", "U8", "[4]", "[0,4]") "}", 4, LPGEMM_CORRUPT_DATA, "a 0 in it"},
      {"escape sequence in a name", "{" ENTRY("a\\u001b[2J", "U8", "[4]", "[0,4]") "}", 4, LPGEMM_CORRUPT_DATA,
       "control character"},
      {"newline in a name", "{" ENTRY("a\\nb", "U8", "[4]", "[0,4]") "}", 4, LPGEMM_CORRUPT_DATA, "control character"},
      {"array", "[]", 0, LPGEMM_CORRUPT_DATA, "no JSON object"},
      {"half a pair", "{" ENTRY("\\ud800", "U8", "[4]", "[0,4]") "}", 4, LPGEMM_CORRUPT_DATA, "no character"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    if (!test_case("files_hostile/safetensors/%s", cases[i].what)) continue;
    buffer b = safetensors_raw(cases[i].header, cases[i].data);
    refused(cases[i].what, &b, cases[i].status, cases[i].word);
  }
}

static void lengths(void) {
  if (test_case("files_hostile/safetensors/length")) {
    static const uint64_t lengths[] = {9, 100, 1u << 30, UINT64_MAX, UINT64_MAX - 7, INT64_MAX, 0};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
      buffer b = {0};
      buffer_number(&b, 8, lengths[i]);
      buffer_text(&b, "{}      ");
      refused("length", &b, LPGEMM_CORRUPT_DATA, lengths[i] ? "promise" : "no value");
    }
    for (size_t size = 0; size <= 8; size++) {
      buffer b = {0};
      buffer_add(&b, "\2\0\0\0\0\0\0\0", size);
      refused("short", &b, LPGEMM_CORRUPT_DATA, "bytes");
    }
  }
  if (test_case("files_hostile/safetensors/good")) { /* what looks odd and is right */
    static const char *const headers[] = {
        "{}",
        "{\"__metadata__\":{\"a\":\"b\"}}   ",
        "{" ENTRY("a", "F4", "[2,4]", "[0,4]") "}",
        "{" ENTRY("a", "F6_E2M3", "[4]", "[0,3]") "," ENTRY("b", "BOOL", "[]", "[3,4]") "}",
        "{" ENTRY("b", "I16", "[1]", "[2,4]") "," ENTRY("a", "F8_E8M0", "[2]", "[0,2]") "}",
        "{" ENTRY("a", "U8", "[0]", "[0,0]") "," ENTRY("\\u00e4\\ud83d\\ude00", "F8_E5M2FNUZ", "[4]", "[0,4]") "}",
        (" { \"a\" : { \"dtype\" : \"U8\" , \"shape\" : [ 1 , 1 , 2 , 1 , 2 ] , \"data_offsets\" : [ 0 , 4 ] , "
         "\"x\" : { \"y\" : [ null , true , false , -1.5e+3 , \"]}\\\"\" ] } } } ")};
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
      lpgemm_file_t file = NULL;
      buffer b = safetensors_raw(headers[i], i < 2 ? 0 : 4);
      CHECK_STATUS(lpgemm_file_parse(b.bytes, b.size, &file), LPGEMM_SUCCESS);
      lpgemm_tensor_t t = {0};
      if (i == 5) CHECK_STATUS(lpgemm_file_find(file, "\xc3\xa4\xf0\x9f\x98\x80", &t), LPGEMM_SUCCESS);
      if (i == 6) {
        CHECK_STATUS(lpgemm_file_tensor(file, 0, &t), LPGEMM_SUCCESS);
        CHECK(t.dims == 4 && t.shape[0] == 1 && t.shape[1] == 2 && t.shape[2] == 1 && t.shape[3] == 2 && t.bytes == 4);
      }
      CHECK_STATUS(lpgemm_file_close(file), LPGEMM_SUCCESS);
      buffer_free(&b);
    }
  }
}

static void json(void) {
  static const char *const wrong[] = {"",
                                      "{",
                                      "{\"a\"",
                                      "{\"a\":",
                                      "{\"a\":1",
                                      "{\"a\":1,",
                                      "{\"a\":1,}",
                                      "{a:1}",
                                      "{\"a\":1}x",
                                      "[1,]",
                                      "[,1]",
                                      "[1 2]",
                                      "]",
                                      "{]",
                                      "[}",
                                      "\"",
                                      "\"\\",
                                      "\"\\x\"",
                                      "\"\\u1\"",
                                      "\"\t\"",
                                      "\"\\udc00\"",
                                      "\"\\ud800x\"",
                                      "\"\xff\"",
                                      "\"\xc0\x80\"",
                                      "\"\xed\xa0\x80\"",
                                      "01",
                                      "1.",
                                      "-",
                                      "+1",
                                      ".5",
                                      "1e",
                                      "nul",
                                      "truex",
                                      "NaN",
                                      "//",
                                      "{\"a\" 1}",
                                      "'a'",
                                      "{\"a\":1;}",
                                      "[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]"};
  lpg_json value, key;
  if (test_case("files_hostile/json/refused")) {
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
      const size_t length = strlen(wrong[i]);
      char *exact = malloc(length + 1);
      memcpy(exact, wrong[i], length);
      if (lpgemm_i_json_check("x.json", exact, length, &value) != LPGEMM_CORRUPT_DATA) {
        test_fail(__FILE__, __LINE__, "%s was not refused", wrong[i]);
      }
      CHECK(strstr(lpgemm_last_error(), "x.json is no JSON") != NULL);
      free(exact);
    }
  }
  if (test_case("files_hostile/json/depth")) { /* no stack is used, however deep it is */
    const size_t deep = 1 << 20;
    char *text = malloc(deep);
    for (int object = 0; object < 2; object++) {
      for (size_t i = 0; i < deep; i++) text[i] = object ? "{\"a\":"[i % 5] : '[';
      CHECK_STATUS(lpgemm_i_json_check("deep", text, deep, &value), LPGEMM_CORRUPT_DATA);
      CHECK(strstr(lpgemm_last_error(), "16 levels") != NULL);
    }
    free(text);
    static const char most[] = "[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]";
    CHECK_STATUS(lpgemm_i_json_check("deep", most, sizeof most - 1, &value), LPGEMM_SUCCESS);
  }
  if (test_case("files_hostile/json/values")) {
    static const char text[] =
        "{\"a\":{\"b\":[1,\"x]\",{}]},\"a\":-9223372036854775807,\"c\":\"\\u00e4\\n\\\"\\/"
        "\",\"d\":1e2,\"e\":9223372036854775807,"
        "\"f\":9223372036854775808}";
    char out[8];
    int64_t n = 0;
    CHECK_STATUS(lpgemm_i_json_check("v", text, sizeof text - 1, &value), LPGEMM_SUCCESS);
    CHECK(lpgemm_i_json_integer(lpgemm_i_json_member(value, "a"), &n) && n == -INT64_MAX); /* the last counts */
    CHECK_INT(lpgemm_i_json_text(lpgemm_i_json_member(value, "c"), out, sizeof out), 5);
    CHECK(strcmp(out, "\xc3\xa4\n\"/") == 0);
    CHECK_INT(lpgemm_i_json_text(lpgemm_i_json_member(value, "c"), out, 5), -1);
    CHECK(!lpgemm_i_json_integer(lpgemm_i_json_member(value, "d"), &n));
    CHECK(lpgemm_i_json_integer(lpgemm_i_json_member(value, "e"), &n) && n == INT64_MAX);
    CHECK(!lpgemm_i_json_integer(lpgemm_i_json_member(value, "f"), &n));
    CHECK_INT(lpgemm_i_json_kind(lpgemm_i_json_member(value, "none")), 0);
    CHECK_INT(lpgemm_i_json_kind(lpgemm_i_json_member(lpgemm_i_json_member(value, "c"), "none")), 0);
    int members = 0;
    for (lpg_json walk = lpgemm_i_json_walk(value), v; lpgemm_i_json_next(&walk, &key, &v);) members++;
    CHECK_INT(members, 6);
  }
}

/* ---- GGUF ---- */

typedef struct info {
  const char *what, *name;
  int dims;
  uint64_t ne[4];
  uint32_t type;
  size_t bytes;
  lpgemm_status_t status;
  const char *word;
} info;

static void gguf_shapes(void) {
  static const info infos[] = {
      {"product wraps", "a", 3, {UINT64_C(1) << 32, UINT64_C(1) << 32, 1}, 0, 32, LPGEMM_SIZE_OVERFLOW, "addressed"},
      {"product wraps to a little",
       "a",
       2,
       {(UINT64_C(1) << 32) + 1, (UINT64_C(1) << 32) + 1},
       0,
       32,
       LPGEMM_SIZE_OVERFLOW,
       "addressed"},
      {"bytes of blocks wrap", "a", 2, {256, (UINT64_C(1) << 56) / 144}, 12, 32, LPGEMM_SIZE_OVERFLOW, "addressed"},
      {"negative", "a", 1, {UINT64_MAX}, 0, 32, LPGEMM_SIZE_OVERFLOW, "2^63"},
      {"more than the file", "a", 1, {1 << 20}, 0, 32, LPGEMM_CORRUPT_DATA, "fetch"},
      {"no multiple of the block", "a", 2, {48, 32}, 2, 1024, LPGEMM_CORRUPT_DATA, "multiple of 32"},
      {"no multiple of the super block", "a", 2, {128, 2}, 12, 1024, LPGEMM_CORRUPT_DATA, "multiple of 256"},
      {"removed type", "a", 1, {32}, 4, 1024, LPGEMM_NOT_SUPPORTED, "Q4_2, removed"},
      {"repacked type", "a", 1, {32}, 36, 1024, LPGEMM_NOT_SUPPORTED, "type 36"},
      {"unknown type", "a", 1, {32}, 99, 1024, LPGEMM_NOT_SUPPORTED, "type 99"},
      {"type of 2^32 - 1", "a", 1, {32}, UINT32_MAX, 1024, LPGEMM_NOT_SUPPORTED, "type 4294967295"},
      {"type that looks like another", "a", 1, {32}, 256 + 2, 1024, LPGEMM_NOT_SUPPORTED, "type 258"},
      {"empty name", "", 1, {32}, 0, 128, LPGEMM_CORRUPT_DATA, "0 bytes"},
      {"name that is no text", "a\xff", 1, {32}, 0, 128, LPGEMM_CORRUPT_DATA, "UTF-8"},
      {"name with an escape", "a\x1b[2J", 1, {32}, 0, 128, LPGEMM_CORRUPT_DATA, "control"},
  };
  for (size_t i = 0; i < sizeof infos / sizeof infos[0]; i++) {
    if (!test_case("files_hostile/gguf/%s", infos[i].what)) continue;
    gguf g = {0};
    gguf_add(&g, infos[i].name, infos[i].dims, infos[i].ne, infos[i].type, infos[i].bytes);
    buffer b = gguf_end(&g);
    refused(infos[i].what, &b, infos[i].status, infos[i].word);
  }
}

/* A GGUF with one tensor of 32 numbers; `at` is where its entry begins. */
static buffer one_tensor(size_t *at) {
  gguf g = {0};
  gguf_pair(&g, "x.y", 4, 4, 7);
  gguf_add(&g, "a", 1, (uint64_t[]){32}, 0, 128);
  buffer b = gguf_end(&g);
  *at = 24 + 8 + 3 + 4 + 4;
  return b;
}

static void put(buffer *b, size_t at, int bytes, uint64_t value) {
  for (int i = 0; i < bytes; i++) b->bytes[at + (size_t)i] = (uint8_t)(value >> 8 * i);
}

static void gguf_heads(void) {
  static const struct {
    const char *what;
    int from_entry, offset, bytes; /* from_entry: counted from the tensor's entry, else from the file's begin */
    uint64_t value;
    lpgemm_status_t status;
    const char *word;
  } cases[] = {
      {"version 1", 0, 4, 4, 1, LPGEMM_VERSION_MISMATCH, "version 1"},
      {"version 4", 0, 4, 4, 4, LPGEMM_VERSION_MISMATCH, "version 4"},
      {"big-endian", 0, 4, 4, 0x03000000, LPGEMM_NOT_SUPPORTED, "big-endian"},
      {"tensors of 2^64 - 1", 0, 8, 8, UINT64_MAX, LPGEMM_CORRUPT_DATA, "promises"},
      {"tensors of 2^61", 0, 8, 8, UINT64_C(1) << 61, LPGEMM_CORRUPT_DATA, "promises"},
      {"more tensors than bytes", 0, 8, 8, 1000, LPGEMM_CORRUPT_DATA, "promises"},
      {"one tensor more", 0, 8, 8, 2, LPGEMM_CORRUPT_DATA, "the file in memory"},
      {"pairs of 2^64 - 1", 0, 16, 8, UINT64_MAX, LPGEMM_CORRUPT_DATA, "promises"},
      {"one pair more", 0, 16, 8, 2, LPGEMM_CORRUPT_DATA, "the file in memory"},
      {"key of 2^64 - 1", 0, 24, 8, UINT64_MAX, LPGEMM_CORRUPT_DATA, "ends inside a key"},
      {"key of 2^64 - 8", 0, 24, 8, UINT64_MAX - 7, LPGEMM_CORRUPT_DATA, "ends inside a key"},
      {"control character in a key", 0, 33, 1, 1, LPGEMM_CORRUPT_DATA,
       "a key has the control character 0x01 at byte 1"},
      {"value type 13", 0, 35, 4, 13, LPGEMM_CORRUPT_DATA, "type 13"},
      {"string of 2^64 - 1", 0, 35, 4, 8, LPGEMM_CORRUPT_DATA, "string"},
      {"name of 2^64 - 1", 1, 0, 8, UINT64_MAX, LPGEMM_CORRUPT_DATA, "name of a tensor"},
      {"5 dimensions", 1, 9, 4, 5, LPGEMM_CORRUPT_DATA, "5 dimensions"},
      {"2^32 - 1 dimensions", 1, 9, 4, UINT32_MAX, LPGEMM_CORRUPT_DATA, "dimensions"},
      {"offset beyond the end", 1, 25, 8, 4096, LPGEMM_CORRUPT_DATA, "at offset 4096"},
      {"offset that wraps", 1, 25, 8, UINT64_MAX - 31, LPGEMM_CORRUPT_DATA, "offset"},
      {"offset between", 1, 25, 8, 4, LPGEMM_CORRUPT_DATA, "alignment"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    if (!test_case("files_hostile/gguf/%s", cases[i].what)) continue;
    size_t entry;
    buffer b = one_tensor(&entry);
    put(&b, (size_t)cases[i].offset + (cases[i].from_entry ? entry : 0), cases[i].bytes, cases[i].value);
    refused(cases[i].what, &b, cases[i].status, cases[i].word);
  }
  if (test_case("files_hostile/gguf/version 2")) {
    lpgemm_file_t file = NULL;
    size_t entry;
    buffer b = one_tensor(&entry);
    put(&b, 4, 4, 2);
    CHECK_STATUS(lpgemm_file_parse(b.bytes, b.size, &file), LPGEMM_SUCCESS);
    CHECK_STATUS(lpgemm_file_close(file), LPGEMM_SUCCESS);
    buffer_free(&b);
  }
}

static void gguf_pairs(void) {
  static const struct {
    uint64_t value;
    int good;
  } alignments[] = {{0, 0},     {1, 1},     {3, 0},        {8, 1},        {48, 0},        {4096, 1},
                    {65536, 1}, {65537, 0}, {1u << 17, 0}, {1u << 31, 0}, {UINT32_MAX, 0}};
  if (test_case("files_hostile/gguf/alignment")) {
    for (size_t i = 0; i < sizeof alignments / sizeof alignments[0]; i++) {
      gguf g = {.alignment = alignments[i].good ? alignments[i].value : 32};
      lpgemm_file_t file = NULL;
      gguf_pair(&g, "general.alignment", 4, 4, alignments[i].value);
      gguf_add(&g, "a", 1, (uint64_t[]){32}, 0, 128);
      buffer b = gguf_end(&g);
      if (!alignments[i].good) {
        refused("alignment", &b, LPGEMM_CORRUPT_DATA, "power of two");
        continue;
      }
      CHECK_STATUS(lpgemm_file_parse(b.bytes, b.size, &file), LPGEMM_SUCCESS);
      CHECK_STATUS(lpgemm_file_close(file), LPGEMM_SUCCESS);
      buffer_free(&b);
    }
    gguf g = {0};
    gguf_pair(&g, "general.alignment", 10, 8, UINT64_MAX);
    buffer b = gguf_end(&g);
    refused("alignment of 2^64 - 1", &b, LPGEMM_CORRUPT_DATA, "power of two");
    gguf_pair(&g, "general.alignment", 5, 4, (uint64_t)-32);
    b = gguf_end(&g);
    refused("negative alignment", &b, LPGEMM_CORRUPT_DATA, "power of two");
    gguf_pair(&g, "general.alignment", 6, 4, 0x42000000);
    b = gguf_end(&g);
    refused("alignment as f32", &b, LPGEMM_CORRUPT_DATA, "no integer");
  }
  if (test_case("files_hostile/gguf/key twice")) {
    gguf g = {0};
    gguf_pair(&g, "general.alignment", 4, 4, 32);
    gguf_pair(&g, "general.alignment", 4, 4, 64);
    buffer b = gguf_end(&g);
    refused("key twice", &b, LPGEMM_CORRUPT_DATA, "unique");
  }
  if (test_case("files_hostile/gguf/arrays")) {
    static const struct {
      uint32_t type;
      uint64_t count;
    } arrays[] = {
        {4, UINT64_MAX}, {4, (UINT64_C(1) << 62) + 1}, {4, 100},       {8, UINT64_MAX}, {8, 1}, {0, 1000}, {9, 1},
        {13, 1},         {12, UINT64_C(1) << 61},      {UINT32_MAX, 0}};
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
      gguf g = {0};
      gguf_pair(&g, "tokenizer.ggml.tokens", 9, 4, arrays[i].type);
      buffer_number(&g.pairs, 8, arrays[i].count);
      if (arrays[i].type == 8) buffer_number(&g.pairs, 8, UINT64_MAX - 3); /* the length of a string */
      buffer b = gguf_end(&g);
      refused("array", &b, LPGEMM_CORRUPT_DATA, "the file in memory");
    }
  }
  if (test_case("files_hostile/gguf/overlap")) {
    for (int i = 0; i < 2; i++) {
      gguf g = {0};
      gguf_add(&g, "a", 1, (uint64_t[]){32}, 0, 128);
      buffer second = {0};
      gguf_string(&second, i ? "a" : "b");
      buffer_number(&second, 4, 1);
      buffer_number(&second, 8, 32);
      buffer_number(&second, 4, 0);
      buffer_number(&second, 8, i ? 128 : 64); /* in the middle of a, or a second a */
      buffer_add(&g.infos, second.bytes, second.size);
      for (int j = 0; j < 128; j++) buffer_add(&g.data, "", 1);
      g.tensor_count = 2;
      buffer b = gguf_end(&g);
      buffer_free(&second);
      refused("overlap", &b, LPGEMM_CORRUPT_DATA, i ? "unique" : "inside another");
    }
  }
  if (test_case("files_hostile/gguf/empty stack")) { /* any number of experts of nothing */
    gguf g = {0};
    lpgemm_file_t file = NULL;
    size_t layers = 1;
    gguf_add(&g, "a_exps.weight", 3, (uint64_t[]){0, 1, UINT64_C(1) << 40}, 2, 0);
    buffer b = gguf_end(&g);
    CHECK_STATUS(lpgemm_file_parse(b.bytes, b.size, &file), LPGEMM_SUCCESS);
    CHECK_STATUS(lpgemm_file_counts(file, NULL, &layers), LPGEMM_SUCCESS);
    CHECK_INT(layers, 0);
    CHECK_STATUS(lpgemm_file_close(file), LPGEMM_SUCCESS);
    buffer_free(&b);
  }
}

/* Every beginning of a good file is refused. */
static void cut(void) {
  static const char *const files[] = {"all_types.gguf", "ct-nvfp4.safetensors", "gptq-4bit-v1.safetensors"};
  for (int i = 0; i < 3; i++) {
    if (!test_case("files_hostile/cut/%s", files[i])) continue;
    char path[128];
    snprintf(path, sizeof path, FORMATS "%s", files[i]);
    buffer b = read_file(path);
    for (size_t size = 0; size < b.size; size += size < 4096 ? 1 : 37) {
      lpgemm_file_t file = NULL;
      uint8_t *exact = malloc(size + 1);
      memcpy(exact, b.bytes, size);
      const lpgemm_status_t status = lpgemm_file_parse(exact, size, &file);
      if (status == LPGEMM_SUCCESS || file) test_fail(__FILE__, __LINE__, "%zu bytes of %s were taken", size, files[i]);
      lpgemm_file_close(file);
      free(exact);
    }
    buffer_free(&b);
  }
}

/* ---- many entries: memory stays within the file's size and 64 MiB ---- */

static void bloat(void) {
  if (!test_case("files_hostile/bloat")) return;
  safetensors s = {0};
  char name[32];
  for (int i = 0; i < 100000; i++) {
    snprintf(name, sizeof name, "%x.qweight", i);
    safetensors_add(&s, name, "I32", "[0]", 0);
  }
  buffer b = safetensors_end(&s);
  lpgemm_file_t file = NULL;
  size_t layers = 0;
  CHECK_STATUS(lpgemm_file_parse(b.bytes, b.size, &file), LPGEMM_SUCCESS);
  CHECK_STATUS(lpgemm_file_counts(file, NULL, &layers), LPGEMM_SUCCESS);
  CHECK_INT(layers, 100000);
  if (file) CHECK(file->memory.left <= b.size + LPG_FILES_SLACK); /* all was paid for out of the budget */
  CHECK_STATUS(lpgemm_file_close(file), LPGEMM_SUCCESS);
  buffer_free(&b);
}

/* ---- folders ---- */

static void check_index(const folder *f, const char *index, lpgemm_status_t want, const char *word) {
  lpgemm_file_t file = NULL;
  folder_text(f, "model.safetensors.index.json", index);
  CHECK_STATUS(lpgemm_file_open(f->path, &file), want);
  if (want != LPGEMM_SUCCESS && !strstr(lpgemm_last_error(), word)) {
    test_fail(__FILE__, __LINE__, "%s: \"%s\" does not say %s", index, lpgemm_last_error(), word);
  }
  lpgemm_file_close(file);
}

static void folders(void) {
  if (!test_case("files_hostile/folder")) return;
  lpgemm_file_t file = NULL;
  folder f = folder_make();
  CHECK_STATUS(lpgemm_file_open(f.path, &file), LPGEMM_IO_ERROR);
  folder_text(&f, "pytorch_model.bin", "x");
  CHECK_STATUS(lpgemm_file_open(f.path, &file), LPGEMM_IO_ERROR);
  CHECK(strstr(lpgemm_last_error(), "pickled") != NULL);
  buffer a = safetensors_raw("{" ENTRY("a", "U8", "[4]", "[0,4]") "}", 4),
         b = safetensors_raw("{" ENTRY("b", "U8", "[4]", "[0,4]") "}", 4);
  folder_write(&f, "one.safetensors", a.bytes, a.size);
  folder_write(&f, "two.safetensors", b.bytes, b.size);
  check_index(&f, "{\"weight_map\":{\"a\":\"one.safetensors\",\"b\":\"two.safetensors\"}}", LPGEMM_SUCCESS, "");
  check_index(&f, "{\"weight_map\":{\"a\":\"one.safetensors\",\"c\":\"two.safetensors\"}}", LPGEMM_CORRUPT_DATA,
              "\"c\"");
  check_index(&f, "{\"weight_map\":{\"a\":\"two.safetensors\",\"b\":\"one.safetensors\"}}", LPGEMM_CORRUPT_DATA,
              "two.safetensors");
  check_index(&f, "{\"weight_map\":{\"a\":\"../one.safetensors\"}}", LPGEMM_CORRUPT_DATA, "beside it");
  check_index(&f, "{\"weight_map\":{\"a\":\"/etc/passwd\"}}", LPGEMM_CORRUPT_DATA, "beside it");
  check_index(&f, "{\"weight_map\":{\"a\":\"config.json\"}}", LPGEMM_CORRUPT_DATA, "beside it");
  check_index(&f, "{\"weight_map\":{\"a\":\"three.safetensors\"}}", LPGEMM_IO_ERROR, "three.safetensors");
  check_index(&f, "{\"weight_map\":{\"a\":1}}", LPGEMM_CORRUPT_DATA, "name of a file");
  check_index(&f, "{\"weight_map\":{}}", LPGEMM_CORRUPT_DATA, "weight_map");
  check_index(&f, "{\"weight_map\":[]}", LPGEMM_CORRUPT_DATA, "weight_map");
  check_index(&f, "[]", LPGEMM_CORRUPT_DATA, "weight_map");
  check_index(&f, "{", LPGEMM_CORRUPT_DATA, "JSON");
  folder_write(&f, "two.safetensors", a.bytes, a.size); /* the same tensor in two files */
  check_index(&f, "{\"weight_map\":{\"a\":\"one.safetensors\",\"b\":\"two.safetensors\"}}", LPGEMM_CORRUPT_DATA,
              "unique");
  remove(folder_path(&f, "model.safetensors.index.json"));
  remove(folder_path(&f, "two.safetensors"));
  folder_text(&f, "config.json", "{\"quantization_config\":");
  CHECK_STATUS(lpgemm_file_open(f.path, &file), LPGEMM_CORRUPT_DATA);
  CHECK(strstr(lpgemm_last_error(), "config.json") != NULL);
  CHECK(mkfifo(folder_path(&f, "pipe.safetensors"), 0600) == 0); /* must not be waited for */
  CHECK_STATUS(lpgemm_file_open(folder_path(&f, "pipe.safetensors"), &file), LPGEMM_IO_ERROR);
  buffer_free(&a);
  buffer_free(&b);
  folder_remove(&f);
}

/* Patterns of a config that would take ages or are nonsense. */
static void configs(void) {
  static const struct {
    const char *pattern;
    lpgemm_status_t status;
  } cases[] = {{"(a*)*(b*)*(c*)*x", LPGEMM_SUCCESS},
               {"((((((((.*)*)*)*)*)*)*)*)*x", LPGEMM_SUCCESS},
               {"(((.{60}){60}){60}){60}", LPGEMM_NOT_SUPPORTED},
               {"(.)\\\\1", LPGEMM_NOT_SUPPORTED},
               {"(?i)a", LPGEMM_NOT_SUPPORTED}};
  if (!test_case("files_hostile/patterns")) return;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    safetensors s = {0};
    lpgemm_file_t file = NULL;
    char config[512];
    safetensors_add(&s, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.qweight", "I32", "[1]", 4);
    buffer b = safetensors_end(&s);
    folder f = folder_make();
    folder_write(&f, "model.safetensors", b.bytes, b.size);
    snprintf(config, sizeof config,
             "{\"quantization_config\":{\"quant_method\":\"gptq\",\"bits\":4,\"dynamic\":{\"%s\":{\"bits\":8}}}}",
             cases[i].pattern);
    folder_text(&f, "config.json", config);
    CHECK_STATUS(lpgemm_file_open(f.path, &file), cases[i].status);
    lpgemm_file_close(file);
    buffer_free(&b);
    folder_remove(&f);
  }
}

void suite_files_hostile(void);

void suite_files_hostile(void) {
  headers();
  lengths();
  json();
  gguf_shapes();
  gguf_heads();
  gguf_pairs();
  cut();
  bloat();
  folders();
  configs();
}
