// Reads Modelfiles and renders templates with Ollama's own packages.
//
//	main render FOLDER                prints {"TEMPLATE": {"CONVERSATION": "text"}} for the files *.gotmpl
//	main modelfile FILE CONVERSATIONS prints what Ollama reads in a Modelfile, and what its TEMPLATE renders
//
// FOLDER has conversations.json, the conversations and the tools; see configs/ollama.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ollama/ollama/api"
	"github.com/ollama/ollama/parser"
	"github.com/ollama/ollama/template"
)

type conversation struct {
	Name     string        `json:"name"`
	HasTools bool          `json:"tools"`
	Messages []api.Message `json:"messages"`
}

type conversations struct {
	Tools         api.Tools      `json:"tools"`
	Conversations []conversation `json:"conversations"`
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func read(path string) conversations {
	text, err := os.ReadFile(path)
	check(err)
	var all conversations
	check(json.Unmarshal(text, &all))
	return all
}

// Renders the conversations that a template can: one without .Tools gets none with tools.
func render(text string, path string) map[string]string {
	made, err := template.Parse(text)
	check(err)
	vars, err := made.Vars()
	check(err)
	tools := false
	for _, name := range vars {
		tools = tools || name == "tools"
	}
	all := read(path)
	rendered := map[string]string{}
	for _, each := range all.Conversations {
		if each.HasTools && !tools {
			continue
		}
		values := template.Values{Messages: each.Messages}
		if each.HasTools {
			values.Tools = all.Tools
		}
		var out bytes.Buffer
		check(made.Execute(&out, values))
		rendered[each.Name] = out.String()
	}
	return rendered
}

func print(value any) {
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	check(encoder.Encode(value))
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == "render" {
		rendered := map[string]map[string]string{}
		paths, err := filepath.Glob(filepath.Join(os.Args[2], "*.gotmpl"))
		check(err)
		for _, path := range paths {
			text, err := os.ReadFile(path)
			check(err)
			name := strings.TrimSuffix(filepath.Base(path), ".gotmpl")
			rendered[name] = render(strings.TrimSuffix(string(text), "\n"), filepath.Join(os.Args[2], "conversations.json"))
		}
		print(rendered)
		return
	}
	if len(os.Args) == 4 && os.Args[1] == "modelfile" {
		file, err := os.Open(os.Args[2])
		check(err)
		parsed, err := parser.ParseFile(file)
		check(err)
		request, err := parsed.CreateRequest(filepath.Dir(os.Args[2]))
		check(err)
		answer := map[string]any{"files": request.Files, "parameters": request.Parameters, "template": request.Template}
		if request.Template != "" {
			answer["rendered"] = render(request.Template, os.Args[3])
		}
		print(answer)
		return
	}
	fmt.Fprintln(os.Stderr, "see the top of main.go")
	os.Exit(2)
}
