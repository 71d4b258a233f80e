ggufmill_job_sections(publish Publish host/publish_sections.h fields/publish_fields.cpp)
ggufmill_job_steps(ggufmill_publish)
