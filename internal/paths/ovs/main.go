package ovs

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Main runs the daemons until in is closed or one of them exits. It must be the only program in its
// mount and process namespaces.
func Main(in io.Reader, out io.Writer) error {
	runtime.LockOSThread() // the daemons die with the thread that started them
	if err := hide(); err != nil {
		return err
	}
	if _, err := run("ovsdb-tool", "-vsyslog:off", "create"); err != nil {
		return err
	}
	ended := make(chan error, 2)
	err := daemon(ended, "ovsdb-server", "--remote=punix:"+socket, "-vconsole:err", "-vsyslog:off")
	if err != nil {
		return err
	}
	if err := await(socket, ended); err != nil {
		return err
	}
	if _, err := run("ovs-vsctl", "--no-syslog", "--no-wait", "init"); err != nil {
		return err
	}
	err = daemon(ended, "ovs-vswitchd", "unix:"+socket, "-vconsole:err", "-vsyslog:off")
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, readyWord); err != nil {
		return err
	}
	go func() {
		_, err := io.Copy(io.Discard, in)
		ended <- err
	}()
	return <-ended
}

// hide mounts a tmpfs over the daemons' directories. It also hides the machine's own Open vSwitch.
func hide() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	err := unix.Mount("toll", "/run", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC,
		"mode=700")
	if err != nil {
		return fmt.Errorf("mount a tmpfs: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	for _, v := range []string{"OVS_RUNDIR", "OVS_DBDIR", "OVS_LOGDIR", "OVS_SYSCONFDIR"} {
		if err := os.Setenv(v, dir); err != nil {
			return err
		}
	}
	return nil
}

func daemon(ended chan<- error, program string, args ...string) error {
	file, err := Find(program)
	if err != nil {
		return err
	}
	cmd := exec.Command(file, args...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", program, err)
	}
	go func() {
		ended <- errors.Join(fmt.Errorf("%s ended", program), cmd.Wait())
	}()
	return nil
}

func await(socket string, ended <-chan error) error {
	const pause = 2 * time.Millisecond
	for deadline := time.Now().Add(startTimeout); time.Now().Before(deadline); {
		c, err := net.Dial("unix", socket)
		if err == nil {
			return c.Close()
		}
		select {
		case err := <-ended:
			return err
		case <-time.After(pause):
		}
	}
	return fmt.Errorf("no answer at %s", socket)
}
