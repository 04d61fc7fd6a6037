package internal

import (
	"os"
	"regexp"
	"testing"
)

// Each target that tests runs in the workflow: by itself, or as a part of make test.
func TestTargetsAreInTheWorkflow(t *testing.T) {
	elsewhere := map[string]string{
		"test":        "sudo … make test",
		"test-vm":     "a part of make test",
		"test-docker": "a part of make test",
		"test-llm":    "fetches a language model of 127 MB",
	}
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	workflow, err := os.ReadFile("../.github/workflows/test.yml")
	if err != nil {
		t.Fatal(err)
	}
	targets := regexp.MustCompile(`(?m)^(test[a-z-]*|[a-z]+-check):.*## `).FindAllSubmatch(
		makefile, -1)
	if len(targets) < 8 {
		t.Fatalf("the Makefile has %d targets that test", len(targets))
	}
	for _, m := range targets {
		name := string(m[1])
		if elsewhere[name] == "" && !regexp.MustCompile(`make `+name+`\b`).Match(workflow) {
			t.Errorf("make %s runs in no workflow", name)
		}
	}
}
