package local

import (
	"os/exec"
	"testing"
	"time"
)

// The child of a wrapper keeps the standard error open.
func TestKeepOfWrapper(t *testing.T) {
	cmd := exec.Command("sh", "-c", "echo no >&2; sleep 1000 & echo $!; exit 3")
	said := Keep(cmd)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	child := make([]byte, 16)
	n, err := out.Read(child)
	if err != nil {
		t.Fatal(err)
	}
	defer exec.Command("kill", string(child[:n-1])).Run()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if err == nil || err.Error() != "exit status 3" || said.String() != "no" {
			t.Errorf("%v, %q", err, said)
		}
	case <-time.After(time.Minute):
		t.Fatal("it waits for the child")
	}
}
