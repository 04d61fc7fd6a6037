package rootlesstest

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// service is a daemon of a machine, whose output is in a file.
type service struct{ log string }

// start starts the daemon and waits until it answers.
func (s service) start(t testing.TB, name string, cmd *exec.Cmd, answers func() bool) {
	t.Helper()
	log, err := os.Create(s.log)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	const patience = 3 * time.Minute // several programs start each other
	testwait.Until(t, patience, name+" answers", func() bool {
		if len(ended) > 0 {
			t.Fatalf("%s ended: %v\n%s", name, <-ended, s.Log())
		}
		return answers()
	})
}

// Log returns what the daemon printed.
func (s service) Log() string {
	b, _ := os.ReadFile(s.log)
	return string(b)
}
