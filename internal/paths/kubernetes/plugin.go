package kubernetes

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/term"
	"k8s.io/client-go/rest"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/exchange"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// pluginArg makes this program run the kubeconfig's credential plug-in with limits on its time and
// output, which client-go does not limit. toll puts itself in the place of the plug-in in the
// loaded configuration.
const pluginArg = "kubernetes-credential-plugin"

const (
	// loginLimit is the limit for a plug-in that can ask the user at a terminal.
	pluginLimit = 30 * time.Second
	loginLimit  = 5 * time.Minute
	// maxCredentials limits a plug-in's output, maxPrompts its messages to the user, in bytes.
	maxCredentials = 1 << 20
	maxPrompts     = 64 << 10
)

// Inner runs a credential plug-in if args request that. ours is false if they do not.
func Inner(args []string) (ours bool, err error) {
	const least = 3 // pluginArg, a time and the plug-in
	if len(args) < least || args[0] != pluginArg {
		return false, nil
	}
	limit, err := time.ParseDuration(args[1])
	if err != nil {
		return true, err
	}
	return true, runPlugin(limit, args[2], args[3:]...)
}

func runPlugin(limit time.Duration, name string, args ...string) error {
	said := &prompts{w: os.Stderr, left: maxPrompts}
	defer exchange.Tell(func(line string) { fmt.Fprintf(os.Stderr, "toll: %s\n", line) })()
	cmd := exec.Command(name, args...)
	cmd.Stdin, cmd.Stderr = os.Stdin, said
	// Only the foreground process group may read the terminal.
	interactive := term.IsTerminal(int(os.Stdin.Fd()))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: !interactive}
	if interactive {
		limit = max(limit, loginLimit)
	}
	runtime.LockOSThread() // Pdeathsig is tied to the thread
	defer runtime.UnlockOSThread()
	out, err := exchange.Output(context.Background(), cmd,
		exchange.Limits{Time: limit, Output: maxCredentials})
	if err != nil {
		return fmt.Errorf("toll: credential plug-in: %s", printable.Line(err.Error()))
	}
	_, err = os.Stdout.Write(out)
	return err
}

type prompts struct {
	w    io.Writer
	left int // bytes
}

func (p *prompts) Write(b []byte) (int, error) {
	n := min(len(b), p.left)
	p.left -= n
	if _, err := io.WriteString(p.w, printable.Text(string(b[:n]))); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (c *Client) boundPlugin() error {
	p := c.config.ExecProvider
	if p == nil {
		return nil
	}
	if _, err := exec.LookPath(p.Command); err != nil {
		return &machine.UnsupportedError{Missing: fmt.Sprintf(
			"the kubeconfig's credential plug-in %s is not installed", said(p.Command)),
			Remedy: cmp.Or(said(p.InstallHint), "install it; kubectl get nodes must work"),
			Err:    err}
	}
	c.plugin = p.Command
	bounded := *p
	bounded.Args = append([]string{pluginArg, pluginLimit.String(), p.Command}, p.Args...)
	bounded.Command = local.Self
	c.config.ExecProvider = &bounded
	return nil
}

// logIn runs the plug-in before the first request, so that it is not bound by the request's time
// limit. client-go keeps the credentials.
func (c *Client) logIn(ctx context.Context) error {
	if c.plugin == "" {
		return nil
	}
	nobody := answerer(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	})
	rt, err := rest.HTTPWrappersForConfig(c.config, nobody)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Server, nil)
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() {
		answer, err := rt.RoundTrip(r)
		if err == nil {
			err = answer.Body.Close()
		}
		done <- err
	}()
	select {
	case err = <-done:
		return c.explain(ctx, "", "", err)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

type answerer func(*http.Request) (*http.Response, error)

func (f answerer) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
