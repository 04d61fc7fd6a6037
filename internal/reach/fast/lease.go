package fast

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/bigtcp"
	"github.com/bridgetoll/bridgetoll/internal/kernel/bpf"
	"github.com/bridgetoll/bridgetoll/internal/kernel/journal"
)

// Shortcuts end with their lease because the BPF programs read the clock. Links need a process that
// waits for the end of the lease: toll fast expire. Every toll that raises links starts it, unless
// one runs.

const (
	look     = time.Second      // between two reads of the note
	lockWait = 10 * time.Second // for another toll that holds the lock
	starting = 30 * time.Second // for the start of a process on a busy machine
)

func lockSoon() (*journal.Hold, error) {
	l, err := journal.LockDir(journal.Machine, lockWait)
	if err != nil {
		return nil, fmt.Errorf("another toll is turning fast on or off: %w", err)
	}
	return l, nil
}

// keepLease renews the lease of links and starts toll fast expire unless it runs.
func (f *Fast) keepLease(lease time.Duration) error {
	st, err := f.renewNote(lease)
	if err != nil || st == nil || journal.Judge(st.Keeper) == journal.Alive {
		return err
	}
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{"toll", "fast", "expire"}, Dir: "/",
		Env:         []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start toll fast expire, which ends the lease: %w", err)
	}
	said := make(chan error, 1)
	go func() {
		_, err := io.ReadFull(out, make([]byte, len(ready)))
		said <- err
		_ = cmd.Wait() // reap it
	}()
	select {
	case err = <-said:
	case <-time.After(starting):
		err = context.DeadlineExceeded
	}
	if err != nil {
		return errors.Join(fmt.Errorf("start toll fast expire, which ends the lease: %w", err),
			cmd.Process.Kill())
	}
	return nil
}

func (f *Fast) renewNote(lease time.Duration) (st *bigtcp.State, err error) {
	lock, err := lockSoon()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if st, err = f.noted(); err != nil || st == nil { // turned off meanwhile
		return nil, err
	}
	st.Renew(lease)
	return st, f.note().Save(st)
}

const ready = "ready\n"

// Expire waits until the lease of links has run out, and takes the links back. The choice stays in
// the note. As soon as this or another process waits, Expire writes a line to out and closes it. It
// returns at once if another process waits, and soon after the part was turned off.
func Expire(ctx context.Context, out io.WriteCloser) error {
	f := &Fast{}
	if err := bpf.CheckClock(); err != nil { // it would end another lease
		return errors.Join(err, out.Close())
	}
	first, err := f.register()
	if err == nil {
		_, err = io.WriteString(out, ready)
	}
	if err = errors.Join(err, out.Close()); err != nil || !first {
		return err
	}
	for ctx.Err() == nil {
		st, err := f.noted()
		if err != nil || st == nil || st.Keeper != journal.Mark() {
			return err
		}
		if st.Lease() == 0 {
			done, err := f.expire()
			if done || err != nil {
				return err
			}
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(min(st.Lease(), look)):
		}
	}
	return nil
}

func (f *Fast) register() (ok bool, err error) {
	lock, err := lockSoon()
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	st, err := f.noted()
	if err != nil || st == nil || journal.Judge(st.Keeper) == journal.Alive {
		return false, err
	}
	st.Keeper = journal.Mark()
	return true, f.note().Save(st)
}

// expire does nothing if the lease was renewed.
func (f *Fast) expire() (done bool, err error) {
	lock, err := lockSoon()
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	st, err := f.noted()
	if err != nil || st == nil || st.Lease() > 0 {
		return st == nil, err
	}
	st.Keeper = ""
	if _, err := f.note().Apply(st, nil); err != nil {
		return true, err
	}
	return true, f.note().Save(st)
}
