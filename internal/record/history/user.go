package history

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	osuser "os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrNowhere means that there is neither a home nor a state directory.
var ErrNowhere = errors.New("this user has no home directory")

// Find returns the store in XDG_STATE_HOME or ~/.local/state (XDG Base Directory Specification 0.8)
// of the user who runs toll or, with sudo, of the user who typed it. The error is ErrNowhere if
// XDG_STATE_HOME is unset and the user has no home directory.
func Find(getenv func(string) string) (*Store, error) {
	who, home, err := behindSudo(getenv)
	if err != nil {
		return nil, err
	}
	if who == nil {
		home = getenv("HOME")
	}
	state := getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) { // the specification: ignore others
		if info, err := os.Stat(home); home == "" || errors.Is(err, fs.ErrNotExist) ||
			err == nil && !info.IsDir() {
			return nil, ErrNowhere
		}
		state = filepath.Join(home, ".local", "state")
	}
	// The directory of journals is another one, bridgetoll: with sudo it is root's.
	return &Store{Dir: filepath.Join(state, "bridgetoll-history"), user: who}, nil
}

type user struct{ uid, gid int }

// behindSudo returns the user who typed sudo and their home. who is nil without sudo, and in a user
// namespace, where root is the user already.
func behindSudo(getenv func(string) string) (who *user, home string, err error) {
	uid, err := strconv.Atoi(getenv("SUDO_UID"))
	if err != nil || uid <= 0 || os.Geteuid() != 0 || !initialNamespace() {
		return nil, "", nil
	}
	u, err := osuser.LookupId(strconv.Itoa(uid))
	if err != nil {
		return nil, "", fmt.Errorf("find the home of user %d: %w", uid, err)
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return nil, "", fmt.Errorf("the group of user %d is %q", uid, u.Gid)
	}
	return &user{uid, gid}, u.HomeDir, nil
}

func initialNamespace() bool {
	text, err := os.ReadFile("/proc/self/uid_map")
	return err == nil && strings.Join(strings.Fields(string(text)), " ") == "0 0 4294967295"
}

// do runs f with the user's file rights, on a thread of its own. The thread ends with f, because
// its rights are not restored.
func (u *user) do(f func() error) error {
	if u == nil {
		return f()
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked
		err := u.become()
		if err == nil {
			err = f()
		}
		done <- err
	}()
	return <-done
}

func (u *user) become() error {
	// Go's own setgroups applies to all threads.
	if _, _, e := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); e != 0 {
		return fmt.Errorf("leave root's groups: %w", e)
	}
	for _, id := range []struct {
		set func(int) (int, error)
		to  int
	}{{unix.SetfsgidRetGid, u.gid}, {unix.SetfsuidRetUid, u.uid}} {
		if _, err := id.set(id.to); err != nil {
			return err
		}
		if now, _ := id.set(-1); now != id.to { // the call reports no failure
			return fmt.Errorf("use files as user %d: %w", u.uid, syscall.EPERM)
		}
	}
	return nil
}
