/* libFuzzer: hostile configs, and the patterns in them. */
#include "files/config.h"
#include "look.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef lpgemm_status_t (*settings_of)(lpg_config *config, const char *layer, lpg_settings *settings);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char *const layers[] = {"lm_head", "model.layers.17.self_attn.q_proj", "model.layers.3.mlp.up_proj"};
  static const settings_of calls[] = {lpgemm_i_config_qweight, lpgemm_i_config_packed, lpgemm_i_config_scaled};
  lpg_memory memory = {NULL, LPG_FILES_SLACK, "the config"};
  lpg_config config = {.memory = &memory, .steps = LPG_CONFIG_STEPS / 64};
  lpg_settings settings;
  lpg_json root;
  char *text = malloc(size + 1); /* exactly as large as the data */
  must(text != NULL);
  memcpy(text, data, size);
  if (lpgemm_i_json_check("the config", text, size, &root) == LPGEMM_SUCCESS) {
    lpgemm_i_use_config(&config, root, "gptq");
    for (int i = 0; i < 3; i++) {
      for (int c = 0; c < 3; c++) {
        const lpgemm_status_t status = calls[c](&config, layers[i], &settings);
        must(status == LPGEMM_SUCCESS || status == LPGEMM_NOT_SUPPORTED || status == LPGEMM_SIZE_OVERFLOW);
        must(status != LPGEMM_SUCCESS || !settings.refusal || *settings.refusal);
      }
    }
    must(lpgemm_i_config_bitnet(&config, &settings) == LPGEMM_SUCCESS);
  }
  lpgemm_i_forget(&memory);
  free(text);
  return 0;
}
