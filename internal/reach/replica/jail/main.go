package jail

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Main runs the jail's first process: it reads an order from in, makes the jail and runs the
// script. The calling goroutine must run on the process's first thread. When the process exits, the
// kernel kills all others in the jail.
func Main(in io.Reader) error {
	out := os.NewFile(reportFD, "report")
	r, err := run(in)
	if err != nil {
		r.Err = err.Error()
	}
	return json.NewEncoder(out).Encode(r)
}

func run(in io.Reader) (r report, err error) {
	if os.Getpid() != 1 {
		return r, errors.New("the process is not the first of a PID namespace")
	}
	var o order
	if err := json.NewDecoder(in).Decode(&o); err != nil {
		return r, err
	}
	for i := range o.Places {
		o.Places[i].FD = firstPlace + i
	}
	// toll may have inherited files that lead out of the jail.
	if err := unix.CloseRange(reportFD, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return r, fmt.Errorf("close inherited files: %w", err)
	}
	filter, err := newFilter(false)
	if err != nil {
		return r, err
	}
	dir, err := makeRoot(o)
	if err != nil {
		return r, err
	}
	if err := limit(); err != nil {
		return r, err
	}
	if err := holdAll(o, filter); err != nil {
		return r, err
	}
	if err := closeProc(); err != nil {
		return r, err
	}
	r.Code, err = runScript(o, dir)
	return r, err
}

// runScript runs the script with the capabilities and the filter of the jail, and returns its exit
// code. It takes the calling thread's privileges away.
func runScript(o order, dir string) (int, error) {
	// With handlers, signals from the script do not end this process; the script inherits none.
	signal.Notify(make(chan os.Signal, 1), unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM,
		unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM, unix.SIGPIPE)
	null, err := os.Open("/dev/null")
	if err != nil {
		return 0, err
	}
	// Other threads keep their privileges, so the script must not get at this process's memory.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("protect the first process: %w", err)
	}
	grants := -1
	if o.Grants {
		grants = firstPlace + len(o.Places)
	}
	script, err := memoryFile(o.Script)
	if err != nil {
		return 0, err
	}
	if err := confine(grants); err != nil {
		return 0, err
	}
	run := append([]string{"sh", "-c", evaluate, "sh"}, interpreter(o.Script)...)
	shell, err := syscall.ForkExec("/bin/sh", run, &syscall.ProcAttr{
		Dir: dir, Env: environment(), Files: []uintptr{null.Fd(), textFD, textFD, script},
		Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return 0, fmt.Errorf("start /bin/sh: %w", err)
	}
	_ = unix.Close(textFD)
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR) || err == nil && pid != shell:
		case err != nil:
			return 0, fmt.Errorf("wait for /bin/sh: %w", err)
		case status.Signaled():
			return 128 + int(status.Signal()), nil
		default:
			return status.ExitStatus(), nil
		}
	}
}

// evaluate runs the script of descriptor 3, which may be longer than an argument, with at most 1
// GiB of data for each process: as commands of the shell, or by the interpreter in its arguments.
const evaluate = `ulimit -d 1048576 || exit; ` +
	`[ $# -eq 0 ] || exec "$@" /proc/self/fd/3; eval "$(cat <&3)" 3<&-`

// interpreter returns the program, with its argument, that a script's first line names after "#!".
func interpreter(script []byte) (out []string) {
	line, _, _ := bytes.Cut(script, []byte("\n"))
	named, ok := bytes.CutPrefix(line, []byte("#!"))
	words := strings.ReplaceAll(string(named), "\t", " ")
	program, argument, _ := strings.Cut(strings.TrimSpace(words), " ")
	if !ok || program == "" {
		return nil
	}
	if out = []string{program}; argument != "" {
		out = append(out, strings.TrimSpace(argument))
	}
	return out
}

// memoryFile returns the descriptor of a file without a name that has the content.
func memoryFile(content []byte) (uintptr, error) {
	fd, err := unix.MemfdCreate("script", unix.MFD_CLOEXEC)
	if err == nil {
		_, err = unix.Pwrite(fd, content, 0)
	}
	if err != nil {
		return 0, fmt.Errorf("pass the script on: %w", err)
	}
	return uintptr(fd), nil
}

func environment() []string {
	return []string{"PATH=" + programs + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:" +
		"/sbin:/bin:/run/current-system/sw/bin", "HOME=/root", "USER=root", "LOGNAME=root",
		"LC_ALL=C", "TERM=dumb", "RES_OPTIONS=timeout:1 attempts:1"} // no name server answers
}

// capabilities are what a script needs: rules, routes and devices; raw sockets; setns.
const capabilities = 1<<unix.CAP_NET_ADMIN | 1<<unix.CAP_NET_RAW | 1<<unix.CAP_SYS_ADMIN

// confine takes the calling thread's privileges, for good. grants is an inherited end of Grants;
// -1: none.
func confine(grants int) error {
	const most = 64
	for c := range most {
		if capabilities&(1<<c) != 0 {
			continue
		}
		err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0)
		if errors.Is(err, unix.EINVAL) && c > unix.CAP_BLOCK_SUSPEND { // the kernel has no more
			break
		}
		if err != nil {
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("drop ambient capabilities: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("forbid new privileges: %w", err)
	}
	header, data := capSets(capabilities)
	if err := unix.Capset(&header, &data[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	if grants >= 0 && confineAsking(grants) == nil {
		return nil
	}
	filter, err := newFilter(false)
	if err != nil {
		return err
	}
	if errno := install(filter); errno != 0 {
		return fmt.Errorf("filter system calls: %w", errno)
	}
	return nil
}

// confineAsking sets a filter that asks. That fails on old kernels, and if this process already has
// such a filter.
func confineAsking(grants int) error {
	filter, err := newFilter(true)
	if err != nil {
		return err
	}
	fd, errno := installAsking(filter)
	if errno != 0 {
		return errno
	}
	return errors.Join(send(grants, fd), unix.Close(fd), unix.Close(grants))
}

func capSets(mask uint32) (unix.CapUserHeader, *[2]unix.CapUserData) {
	return unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3},
		&[2]unix.CapUserData{{Effective: mask, Permitted: mask}}
}

// limit limits what the script may use of the machine's memory and processes.
func limit() error {
	for _, l := range []struct {
		what int
		max  uint64
	}{{unix.RLIMIT_CORE, 0}, {unix.RLIMIT_NPROC, mostProcesses},
		{unix.RLIMIT_FSIZE, diskSize}, {unix.RLIMIT_MEMLOCK, 64 << 10}} {
		var now unix.Rlimit
		if err := unix.Getrlimit(l.what, &now); err != nil {
			return fmt.Errorf("read a limit: %w", err)
		}
		m := min(l.max, now.Max)
		if err := unix.Setrlimit(l.what, &unix.Rlimit{Cur: m, Max: m}); err != nil {
			return fmt.Errorf("set a limit: %w", err)
		}
	}
	// If memory is short, the kernel ends the jail first.
	return os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
}

const mostProcesses = 1024

// limitProcesses limits the number of processes where the limit is the PID namespace's own. In
// older kernels it would be the machine's.
func limitProcesses() error {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return err
	}
	if !atLeast(unix.ByteSliceToString(u.Release[:]), 6, 14) {
		return nil
	}
	return os.WriteFile("/proc/sys/kernel/pid_max", []byte(strconv.Itoa(mostProcesses)), 0)
}

// atLeast reports whether a kernel's release is of the version or a newer one.
func atLeast(release string, major, minor int) bool {
	parts := strings.FieldsFunc(release, func(r rune) bool { return r < '0' || r > '9' })
	if len(parts) < 2 {
		return false
	}
	a, errA := strconv.Atoi(parts[0])
	b, errB := strconv.Atoi(parts[1])
	return errA == nil && errB == nil && (a > major || a == major && b >= minor)
}
