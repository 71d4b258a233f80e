module ggufmill/ollama

go 1.24

require github.com/ollama/ollama v0.17.4
