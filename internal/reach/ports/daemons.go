package ports

import (
	"regexp"
	"strings"
)

// needDaemon has the programs that work only with a daemon.
var needDaemon = map[string]bool{"crictl": true, "docker": true, "docker-compose": true,
	"fail2ban-client": true, "firewall-cmd": true, "incus": true, "kubectl": true, "lxc": true,
	"nerdctl": true, "netplan": true, "networkctl": true, "nmcli": true, "podman": true,
	"podman-compose": true, "rc-service": true, "service": true, "systemctl": true, "virsh": true}

const (
	inWord     = `[^\s;&|()]`
	assignment = `\w+=(?:"[^"]*"|'[^']*'|` + inWord + `)*`
	wrapper    = `(?:` + inWord + `*/)?(?:sudo|doas|env|nohup|nice|setsid|timeout|xargs|nsenter|` +
		`(?:ba|da)?sh)(?:[ \t]+(?:-[ugU][ \t]+` + inWord + `+|-` + inWord + `+|\d` + inWord + `*))*`
)

var (
	// inShell matches a command of the shell up to the name of its program. Before the name may
	// stand words of the shell, variables, a program that runs others, with options, and a directory.
	inShell = regexp.MustCompile("(?m)(?:^|[;&|(){`])[ \\t]*(?:(?:!|then|do|else|elif|if|while|" +
		"until|time|exec|command|eval|" + assignment + `|` + wrapper + `)[ \t]+)*["']?(?:` + inWord +
		`*/)?([\w.-]+=?)`)
	// heredoc matches the beginning of a text for a command, with the line that ends it.
	heredoc = regexp.MustCompile(`(?:^|[^<])<<-?[ \t]*\\?["']?([\w.-]+)`)
	// toShell matches a text that is commands.
	toShell = regexp.MustCompile(`(?:^|[\s;&|/])(?:ba|da)?sh\b[^;&|]*<<`)
)

// askDaemons returns the programs among commands of the shell that ask a daemon.
func askDaemons(commands string) (out []string) {
	commands = strings.ReplaceAll(commands, "\\\n", " ")
	for _, m := range inShell.FindAllStringSubmatch(withoutTexts(commands), -1) {
		if needDaemon[m[1]] {
			out = once(out, m[1])
		}
	}
	return out
}

// withoutTexts returns commands without the lines that others than shells read as a text.
func withoutTexts(commands string) string {
	lines := strings.Split(commands, "\n")
	var out []string
	for i := 0; i < len(lines); i++ {
		if out = append(out, lines[i]); toShell.MatchString(lines[i]) {
			continue
		}
		for _, m := range heredoc.FindAllStringSubmatch(lines[i], -1) {
			for k, line := range lines[i+1:] { // "1<<2" begins no text
				if strings.TrimLeft(line, "\t") == m[1] {
					i += k + 1
					break
				}
			}
		}
	}
	return strings.Join(out, "\n")
}
