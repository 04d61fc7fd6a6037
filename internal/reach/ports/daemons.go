package ports

import (
	"regexp"
	"slices"
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

var (
	// hinders matches what programs print about what a copy does not permit, or does not have: other
	// machines and daemons. Nobody reaches another port by the settings that irrelevant matches.
	hinders = regexp.MustCompile(`(?i)operation not permitted|permission denied|` +
		`read-only file system|address family not supported|no space left on device|/dev/net/tun|` +
		`cannot connect to the docker daemon|failed to connect to (\w+ )*bus|` +
		`not been booted with systemd|firewalld is not running|` +
		`host/network .* not found|failure in name resolution|could not resolve|` +
		`name or service not known|unable to resolve`)
	irrelevant = regexp.MustCompile(`(key "|/proc/sys/)(kernel|vm|fs|dev|user|` +
		`net[./](core|netfilter|ipv4[./](tcp|udp)_))`)
	// absent matches what programs print about a file that they do not find.
	absent = regexp.MustCompile(`(?i)no such file|(cannot|can't|could not|unable to) ` +
		`(open|read|find)|not found|does not exist`)
	fileName = regexp.MustCompile("/[^\\s\"'`:;,()]+")
	// complains matches what programs print about what they did not do.
	complains = regexp.MustCompile(`(?i)\b(errors?|fail(ed|s|ure)?|cannot|can't|could not|unable|` +
		`invalid|bad|unknown|unrecognized|denied|refused|no such|no (chain|rule)|warn(ing)?|usage|` +
		`not (found|permitted|supported|allowed|running)|(does not|doesn't|already|file) exists?)\b`)
)

// hinderedBy returns the lines of commands' output about what may have failed only because they ran
// in a copy. hidden reports whether this machine has a file, and a copy has not.
func hinderedBy(output string, hidden func(name string) bool) (out []string) {
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		file := absent.MatchString(line) && slices.ContainsFunc(fileName.FindAllString(line, -1),
			func(name string) bool { return !strings.HasPrefix(name, "/proc/self/") && hidden(name) })
		if (file || hinders.MatchString(line)) && !irrelevant.MatchString(line) {
			out = once(out, line)
		}
	}
	return out
}

// Complain reports whether the commands printed something that the user should read.
func (t *Tried) Complain() bool {
	return t.Output != "" && (t.Code != 0 || t.Unknown() || complains.MatchString(t.Output))
}
