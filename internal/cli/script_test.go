package cli

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/bridgetoll/bridgetoll/internal/paths/agent"
	"github.com/bridgetoll/bridgetoll/internal/paths/cluster"
	pods "github.com/bridgetoll/bridgetoll/internal/paths/kubernetes"
	"github.com/bridgetoll/bridgetoll/internal/paths/lab"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

func TestMain(m *testing.M) {
	kubernetes = pods.Backend()
	if _, said := os.LookupEnv(historyEnv.name); !said {
		os.Setenv(historyEnv.name, historyEnv.value) // tests store nothing in the home directory of the user
	}
	if _, said := os.LookupEnv(busyEnv.name); !said {
		os.Setenv(busyEnv.name, busyEnv.value) // tests share the CPUs
	}
	if _, said := os.LookupEnv(columnsEnv); !said {
		os.Setenv(columnsEnv, "100") // as the manual's examples
	}
	if len(os.Args) > 1 && os.Args[1] == agent.Arg {
		os.Exit(start(os.Args[1:])) // started by the toll of a test
	}
	testscript.Main(accounted{m}, map[string]func(){
		scripted: func() {
			if os.Getenv(plainEnv) != "" {
				kubernetes = cluster.Kubernetes{}
			}
			if os.Getenv(fakeEnv) != "" {
				fakeLab()
			} else {
				epochLength = 1 // more slices only narrow figures, which are not compared
			}
			if os.Getenv(patientEnv) != "" && slices.Contains(os.Args, "--rounds") {
				os.Exit(patient(os.Args[1:]))
			}
			os.Exit(start(os.Args[1:]))
		},
	})
}

const scripted = "toll"

// plainEnv makes the toll of a script one without Kubernetes' client.
const plainEnv = "TOLL_TEST_PLAIN"

// labs limits the tests that measure in labs. More would keep each other's loads off the CPUs.
var labs = make(chan bool, 2)

// others limits the tests that wait more than they measure.
var others = make(chan bool, 3)

func besideLabs(t *testing.T) {
	t.Parallel()
	others <- true
	t.Cleanup(func() { <-others })
}

func inLabs(t *testing.T) {
	t.Parallel()
	labs <- true
	t.Cleanup(func() { <-labs })
}

func TestScripts(t *testing.T) {
	t.Parallel()
	p := scripts("testdata", func(e *testscript.Env) error {
		e.Setenv(patientEnv, "yes")
		e.Setenv(rerunsEnv, os.Getenv(rerunsEnv))
		labs <- true
		e.Defer(func() { <-labs })
		return nil
	})
	files, err := filepath.Glob(filepath.Join(p.Dir, "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	p.Dir = ""
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := p
			p.Files = []string{file}
			runScript(t, name, p)
		})
	}
}

// runScript runs a script once more if it failed after a run of toll that says that the machine was
// too busy: such a run may succeed, and lack what the script looks for.
func runScript(t *testing.T, name string, p testscript.Params) {
	t.Helper()
	for i := 1; ; i++ {
		r := &scriptRun{TB: t}
		done := make(chan struct{})
		go func() { // which FailNow and Skip end
			defer close(done)
			testscript.RunT(r, p)
		}()
		<-done
		said := r.said.String()
		if r.failed && i < tries && pathtest.TooBusy(said) {
			noteRerun([]string{"script", name}, said)
			continue
		}
		t.Log(said)
		switch {
		case r.failed:
			t.FailNow()
		case r.skipped:
			t.SkipNow()
		}
		return
	}
}

// scriptRun is one run of a script.
type scriptRun struct {
	testing.TB
	said            strings.Builder
	failed, skipped bool
}

func (r *scriptRun) Run(_ string, f func(testscript.T)) { f(r) }

func (r *scriptRun) Parallel() {}

func (r *scriptRun) Verbose() bool { return testing.Verbose() }

func (r *scriptRun) Log(args ...any) { fmt.Fprintln(&r.said, args...) }

func (r *scriptRun) FailNow() {
	r.failed = true
	runtime.Goexit()
}

func (r *scriptRun) Fatal(args ...any) {
	r.Log(args...)
	r.FailNow()
}

func (r *scriptRun) Skip(args ...any) {
	r.Log(args...)
	r.skipped = true
	runtime.Goexit()
}

func TestFakeScripts(t *testing.T) {
	testscript.Run(t, scripts("testdata/fake", func(e *testscript.Env) error {
		e.Setenv(fakeEnv, "yes")
		return nil
	}))
}

func scripts(dir string, setup func(*testscript.Env) error) testscript.Params {
	return testscript.Params{
		Dir: dir,
		Setup: func(e *testscript.Env) error {
			e.Setenv(historyEnv.name, os.Getenv(historyEnv.name))
			e.Setenv(busyEnv.name, os.Getenv(busyEnv.name))
			return setup(e)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"engine": engineAt,
			"exits":  exits,
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "lab":
				return mayBuild() || os.Getenv("CI") == "true", nil
			case "iperf3":
				_, err := exec.LookPath(cond)
				return err == nil || os.Getenv("CI") == "true", nil
			case "root":
				return os.Geteuid() == 0, nil
			case "tracer":
				_, closeTracer, err := openTracer(false)
				if err != nil {
					return os.Geteuid() == 0 && os.Getenv("CI") == "true", nil
				}
				return true, closeTracer()
			}
			return false, errors.New("unknown condition " + cond)
		},
	}
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

// engineAt listens at a socket as a Docker Engine that describes itself so:
//
//	engine SOCKET API INFO
func engineAt(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: engine SOCKET API INFO")
	}
	l, err := net.Listen("unix", ts.MkAbs(args[0]))
	if err != nil {
		ts.Fatalf("engine: %v", err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", args[1])
		if strings.HasSuffix(r.URL.Path, "/info") {
			io.WriteString(w, args[2])
		}
	})}
	go server.Serve(l)
	ts.Defer(func() { server.Close() })
}
