package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/bridgetoll/bridgetoll/internal/lab"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"toll": func() { os.Exit(start(os.Args[1:])) },
	})
}

// TestScripts runs the scripts of testdata: toll as its users run it. They run
// one after another, because a load that is kept off its CPUs is no result.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".txtar"), func(t *testing.T) { script(t, f) })
	}
}

func script(t *testing.T, file string) {
	testscript.Run(t, testscript.Params{
		Files: []string{file},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits,
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "lab":
				return mayBuild() || os.Getenv("CI") == "true", nil
			}
			return false, errors.New("unknown condition " + cond)
		},
	})
}

func mayBuild() bool {
	l := &lab.Lab{}
	defer l.Close()
	return l.MayBuild()
}

// exits runs a command that must end with the given code:
//
//	exits 2 toll compare teleport
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARGUMENT…]")
	}
	want, err := strconv.Atoi(args[0])
	if err != nil {
		ts.Fatalf("exits: %v", err)
	}
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("exits: %v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}
