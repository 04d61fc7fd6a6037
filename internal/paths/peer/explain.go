package peer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/machine"
)

// told maps parts of ssh's messages to explanations.
var told = []struct{ says, missing, remedy string }{
	{"password is required", "sudo on %s asks for a password", sudoers},
	{"authentication is required", "sudo on %s asks for a password", sudoers},
	{"not in the sudoers file", "sudo on %s does not let you become root", sudoers},
	{"not allowed to execute", "sudo on %s does not let you run toll as root", sudoers},
	{"may not run sudo", "sudo on %s does not let you become root", sudoers},
	{"must have a tty", "sudo on %s only works at a terminal (requiretty)", sudoers},
	{"sudo: not found", "%s has no sudo", "--peer root@HOST, without --peer-sudo"},
	{"sudo: command not found", "%s has no sudo", "--peer root@HOST, without --peer-sudo"},
	{"remote host identification has changed", "the host key of %s is not the one that ssh knows",
		"find out why, then ssh-keygen -R HOST; toll takes no key that ssh does not"},
	{"host key verification failed", "ssh does not know the host key of %s",
		"log in once by hand, ssh HOST, and compare the key"},
	{"permission denied", "%s does not let you in without asking for a password",
		"a key that ssh's agent has: ssh-copy-id, ssh-add; then ssh -o BatchMode=yes HOST true must work"},
	{"too many authentication failures", "%s does not let you in without asking for a password",
		"IdentitiesOnly and IdentityFile in ssh's configuration"},
	{"could not resolve hostname", "no machine is called %s",
		"its name or address, or an alias in ssh's configuration"},
	{"connection refused", "%s runs no ssh server there",
		"[user@]HOST:PORT, if it has another port"},
	{"no route to host", "%s cannot be reached", "is it on?"},
	{"network is unreachable", "%s cannot be reached", "is there a route to it?"},
	{"connection timed out", "%s does not answer",
		"is it on, and does a firewall let ssh through?"},
	{"operation timed out", "%s does not answer", "is it on, and does a firewall let ssh through?"},
	{"bad configuration option", "this ssh does not know an option: %s was not reached",
		"its own configuration, or an OpenSSH of 7.6 or later"},
	{"exec format error", "toll does not run on %s: it is for another kind of machine",
		"--peer-binary with a toll that is built for it"},
}

// The line for sudoers permits only the agent of an installed toll to run as root.
const sudoers = `install this toll there as /usr/local/bin/toll, and with visudo add the line "USER ALL=(root) NOPASSWD: /usr/local/bin/toll agent *"; or --peer root@HOST without --peer-sudo`

func (c *connection) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), errSilent) && !errors.Is(err, errSilent) {
		select {
		case <-c.ended:
		default:
			return context.Cause(ctx)
		}
	}
	if errors.As(err, new(*machine.UnsupportedError)) {
		return err
	}
	select {
	case <-c.ended:
	case <-time.After(endLimit): // it is still running
		return fmt.Errorf("%s: %w", c.host, err)
	}
	if c.err == nil {
		return fmt.Errorf("%s: %w", c.host, err)
	}
	low := strings.ToLower(c.err.Error())
	for _, t := range told {
		if strings.Contains(low, t.says) {
			return &machine.UnsupportedError{Missing: fmt.Sprintf(t.missing, c.host),
				Remedy: c.host.in(t.remedy, cmp.Or(c.seen.User, "you"))}
		}
	}
	return &machine.UnsupportedError{Missing: fmt.Sprintf("toll does not start on %s", c.host),
		Err:    errors.Join(c.err, err),
		Remedy: c.host.needsShell()}
}

func (h Host) needsShell() string {
	return "ssh -o BatchMode=yes " + h.typed() + " sh must give a POSIX shell"
}
