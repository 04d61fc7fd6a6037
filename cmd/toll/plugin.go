package main

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
)

// toll is a plug-in of the docker command when it is called by this name: docker then
// has the command toll.
const (
	pluginName     = "docker-toll"
	pluginCommand  = "toll"
	pluginMetadata = "docker-cli-plugin-metadata" // how docker asks a file what it is

	dockerEnv       = "DOCKER_CLI_PLUGIN_ORIGINAL_CLI_COMMAND" // docker's own file: it started us
	dockerSocketEnv = "DOCKER_CLI_PLUGIN_SOCKET"               // what it closes when we are to end
)

// asPlugin makes a command line that docker calls its plug-in with one of toll, with what
// docker's own options say in the environment. Others stay as they are.
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

// setenv sets a variable, or removes it if the value is "".
func setenv(name, value string) error {
	if value == "" {
		return os.Unsetenv(name)
	}
	return os.Setenv(name, value)
}

// dockersOptions reads docker's own options, which come before the plug-in's command. It
// returns the rest, nil if this is no such command line, and what they mean as
// environment. Those of TLS are for daemons that toll does not speak to.
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
	if *name != "" { // it counts more than the environment's DOCKER_HOST
		env["DOCKER_CONTEXT"], env["DOCKER_HOST"] = *name, ""
	}
	if len(*hosts) > 0 {
		env["DOCKER_HOST"] = (*hosts)[len(*hosts)-1]
	}
	return fl.Args(), env
}

// printMetadata says to docker what this plug-in is.
func printMetadata(w io.Writer) error {
	return json.NewEncoder(w).Encode(map[string]string{
		"SchemaVersion":    "0.1.0",
		"Vendor":           "bridgetoll",
		"Version":          version,
		"ShortDescription": "Measure what container networks cost",
		"URL":              "https://github.com/bridgetoll/bridgetoll",
	})
}

// endWithDocker cancels when the docker command closes its socket, or ends: so it passes
// a signal on that did not come from the terminal of both.
func endWithDocker(cancel context.CancelCauseFunc) error {
	at := os.Getenv(dockerSocketEnv)
	if at == "" {
		return nil
	}
	conn, err := net.Dial("unix", at)
	// Not for what toll starts: the socket is docker's to us, and in our network namespace.
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
