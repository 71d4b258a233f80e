/* quantize MODEL.gguf FOLDER: quantizes the model in C, and shows the guarantees that a program can rely on: errors for
 * invalid requests, cancellation from the progress function, no partial outputs, and rows in memory. */
#include <ggufmill.h>
#include <stdio.h>
#include <string.h>

static ggufmill_control* control;
static int progress_calls;

static void cancel(const ggufmill_progress* progress, void* user_data) {
  (void)progress;
  (void)user_data;
  ++progress_calls;
  ggufmill_control_cancel(control);
}

/* Opens a job that quantizes `model` with `recipe`. */
static ggufmill_job* open_job(const ggufmill_context* context, const char* model, const char* folder,
                              const char* recipe) {
  char text[4096];
  ggufmill_job* job = NULL;
  ggufmill_error* error = NULL;
  snprintf(text, sizeof text, "version: 1\nsource: {gguf: %s}\noutputs: [{gguf: %s/c.gguf, quantize: %s}]\n", model,
           folder, recipe);
  if (ggufmill_job_parse(context, text, "job", NULL, &job, &error) != GGUFMILL_SUCCESS)
    fputs(ggufmill_error_text(error), stderr);
  ggufmill_error_free(error);
  return job;
}

/* Returns 1 if FOLDER/c.gguf exists. */
static int output_exists(const char* folder) {
  char path[4096];
  FILE* file;
  snprintf(path, sizeof path, "%s/c.gguf", folder);
  file = fopen(path, "rb");
  if (file) fclose(file);
  return file != NULL;
}

/* Converts a row to a type and back. Returns 0 if the values are nearly the same. */
static int rows_in_memory(const ggufmill_context* context) {
  float values[256], decoded[256];
  unsigned char bytes[144];
  uint64_t size = 0;
  for (int i = 0; i < 256; ++i) values[i] = (float)i / 256;
  if (ggufmill_row_bytes(context, "Q4_K", 256, &size, NULL) != GGUFMILL_SUCCESS || size != sizeof bytes) return 1;
  if (ggufmill_quantize_rows(context, "Q4_K", NULL, values, 1, 256, NULL, 0, bytes, size, 0, NULL, NULL)) return 1;
  if (ggufmill_decode_rows(context, "Q4_K", bytes, size, 1, 256, decoded, 0, NULL, NULL)) return 1;
  for (int i = 0; i < 256; ++i)
    if (decoded[i] - values[i] > 0.1f || values[i] - decoded[i] > 0.1f) return 1;
  return 0;
}

int main(int argc, char** argv) {
  ggufmill_context* context = NULL;
  ggufmill_job* job;
  ggufmill_error* error = NULL;
  ggufmill_status status;
  char* report = NULL;
  if (argc != 3 || ggufmill_version_number() != GGUFMILL_VERSION_NUMBER) return 1;
  if (ggufmill_context_create(NULL, &context, NULL) != GGUFMILL_SUCCESS) return 2;
  if (rows_in_memory(context) != 0) return 3;

  job = open_job(context, argv[1], argv[2], "IQ1_S"); /* which needs importance */
  status = ggufmill_job_check(job, NULL, &error);
  if (status != GGUFMILL_ERROR_USAGE || ggufmill_error_count(error) == 0) return 4;
  ggufmill_error_free(error);
  ggufmill_job_free(job);

  job = open_job(context, argv[1], argv[2], "Q4_K_M");
  control = ggufmill_control_create(NULL, NULL);
  ggufmill_control_cancel(control);
  if (ggufmill_job_run(job, NULL, control, NULL, NULL) != GGUFMILL_ERROR_INTERRUPTED) return 5;
  ggufmill_control_free(control);
  if (output_exists(argv[2])) return 6;

  control = ggufmill_control_create(cancel, NULL);
  status = ggufmill_job_run(job, NULL, control, NULL, NULL);
  if (status != GGUFMILL_ERROR_INTERRUPTED && status != GGUFMILL_SUCCESS) return 7; /* it may have come too late */
  if (progress_calls == 0) return 8;
  ggufmill_control_free(control);

  status = ggufmill_job_run(job, "{\"overwrite\": true}", NULL, &report, &error);
  if (status != GGUFMILL_SUCCESS) return fputs(ggufmill_error_text(error), stderr), 9;
  if (!strstr(report, "\"report\"") || !output_exists(argv[2])) return 10;
  ggufmill_free(report);
  ggufmill_context_free(context); /* the job keeps its own */
  ggufmill_job_free(job);
  return 0;
}
