package pathtest

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/testwait"
)

// Dockerd is a Docker daemon, which $DOCKER_HOST must name as unix://HOME/sock.
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
	// A parent-death signal would come with the end of the test's thread.
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

// Stop ends the daemon and waits for its end.
func (d *Dockerd) Stop() {
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	_ = d.cmd.Wait()
}
