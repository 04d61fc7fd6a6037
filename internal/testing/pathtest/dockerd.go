package pathtest

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// Dockerd is a Docker daemon for a test. $DOCKER_HOST must be unix://HOME/sock.
type Dockerd struct {
	Home  string // the folder of its files
	Flags []string
	cmd   *exec.Cmd
}

// Start starts the daemon and waits until it answers.
func (d *Dockerd) Start(t testing.TB) {
	t.Helper()
	log, err := os.OpenFile(d.Home+"/log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	d.cmd = exec.Command("dockerd", append(
		[]string{"--data-root", d.Home + "/data", "--exec-root", d.Home + "/exec",
			"--pidfile", d.Home + "/pid", "-H", "unix://" + d.Home + "/sock"}, d.Flags...)...)
	d.cmd.Stdout, d.cmd.Stderr = log, log
	// Without a parent-death signal, which would be sent when the test's thread ends.
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if !testwait.Met(time.Minute, func() bool {
		return exec.Command("docker", "info").Run() == nil
	}) {
		b, _ := os.ReadFile(d.Home + "/log")
		t.Fatalf("dockerd does not answer:\n%s", b)
	}
}

// Stop stops the daemon and waits until it has exited.
func (d *Dockerd) Stop() {
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	_ = d.cmd.Wait()
}
