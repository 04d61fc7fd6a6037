package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Under this name, toll is a plug-in of the docker command.
const (
	pluginName     = "docker-toll"
	pluginCommand  = "toll"
	pluginMetadata = "docker-cli-plugin-metadata" // with this argument, docker reads a plug-in's metadata

	dockerEnv       = "DOCKER_CLI_PLUGIN_ORIGINAL_CLI_COMMAND" // docker's executable
	dockerSocketEnv = "DOCKER_CLI_PLUGIN_SOCKET"               // closed to stop toll
)

// asPlugin returns the command line without docker's part, and puts docker's own options into the
// environment. It returns other command lines unchanged.
func asPlugin(argv []string) ([]string, error) {
	if len(argv) == 0 || filepath.Base(argv[0]) != pluginName {
		return argv, nil
	}
	args := argv[1:]
	if len(args) > 1 && args[1] == pluginCommand {
		switch args[0] {
		case "help", cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd:
			return append([]string{pluginCommand, args[0]}, args[2:]...), nil
		}
	}
	rest, env := dockersOptions(args)
	if len(rest) == 0 || rest[0] != pluginCommand {
		return append([]string{pluginCommand}, args...), nil
	}
	for name, value := range env {
		if err := setenv(name, value); err != nil {
			return nil, err
		}
	}
	return rest, nil
}

// setenv sets a variable, or removes it if value is "".
func setenv(name, value string) error {
	if value == "" {
		return os.Unsetenv(name)
	}
	return os.Setenv(name, value)
}

// dockersOptions parses docker's own options, which precede the plug-in's command. rest is nil for
// other command lines. TLS options are ignored, because toll does not connect to such daemons.
func dockersOptions(args []string) (rest []string, env map[string]string) {
	fl := pflag.NewFlagSet("docker", pflag.ContinueOnError)
	fl.SetInterspersed(false)
	fl.SetOutput(io.Discard)
	config := fl.String("config", "", "")
	name := fl.StringP("context", "c", "", "")
	hosts := fl.StringArrayP("host", "H", nil, "")
	fl.BoolP("debug", "D", false, "")
	fl.StringP("log-level", "l", "", "")
	for _, f := range []string{"tls", "tlsverify"} {
		fl.Bool(f, false, "")
	}
	for _, f := range []string{"tlscacert", "tlscert", "tlskey"} {
		fl.String(f, "", "")
	}
	if fl.Parse(args) != nil {
		return nil, nil
	}
	env = map[string]string{}
	if *config != "" {
		env["DOCKER_CONFIG"] = *config
	}
	if *name != "" { // it overrides DOCKER_HOST
		env["DOCKER_CONTEXT"], env["DOCKER_HOST"] = *name, ""
	}
	if len(*hosts) > 0 {
		env["DOCKER_HOST"] = (*hosts)[len(*hosts)-1]
	}
	return fl.Args(), env
}

func printMetadata(w io.Writer) error {
	return json.NewEncoder(w).Encode(map[string]string{
		"SchemaVersion":    "0.1.0",
		"Vendor":           "bridgetoll",
		"Version":          version,
		"ShortDescription": "Measure what container networks cost",
		"URL":              "https://github.com/bridgetoll/bridgetoll",
	})
}

// endWithDocker calls cancel when the docker command closes its socket or exits, which is how
// docker forwards signals that did not come from the shared terminal.
func endWithDocker(cancel context.CancelCauseFunc) error {
	at := os.Getenv(dockerSocketEnv)
	if at == "" {
		return nil
	}
	conn, err := net.Dial("unix", at)
	// Child processes must not see it: the socket is between docker and toll, in toll's network
	// namespace.
	if err := errors.Join(err, os.Unsetenv(dockerSocketEnv)); err != nil {
		return err
	}
	go func() {
		defer conn.Close()
		_, _ = io.Copy(io.Discard, conn)
		cancel(signaled{syscall.SIGTERM})
	}()
	return nil
}

// Under the first name, toll is a kubectl plug-in. Under the second, kubectl's shell completion
// requests words from it (kubectl 1.26 and later).
const (
	kubectlName     = "kubectl-toll"
	kubectlComplete = "kubectl_complete-toll"

	// toll sets kubectlEnv itself, because kubectl passes nothing to its plug-ins.
	kubectlEnv = "BRIDGETOLL_KUBECTL"
)

func asKubectl(argv []string) ([]string, error) {
	if len(argv) == 0 {
		return argv, nil
	}
	args := argv[1:]
	switch filepath.Base(argv[0]) {
	case kubectlName:
	case kubectlComplete:
		args = append([]string{cobra.ShellCompRequestCmd}, args...)
	default:
		return argv, nil
	}
	return append([]string{pluginCommand}, args...), os.Setenv(kubectlEnv, "1")
}

func forKubectl(root *cobra.Command) {
	if os.Getenv(kubectlEnv) == "" {
		return
	}
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl " +
		root.Name()}
	for _, c := range append(root.Commands(), root) {
		f := c.Flags().Lookup("on")
		if f == nil {
			continue
		}
		if list, is := f.Value.(pflag.SliceValue); is {
			_ = list.Replace([]string{sample.Kubernetes}) // a list of words takes any
			f.DefValue = f.Value.String()
		}
	}
}
