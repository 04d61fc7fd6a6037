package sample

import (
	"strings"
	"unicode"
)

// CommandLine returns toll's command line with args, quoted for a shell.
func CommandLine(args []string) string {
	line := "toll"
	for _, arg := range args {
		line += " " + quoted(arg)
	}
	return line
}

func quoted(arg string) string {
	plain := func(r rune) bool {
		return strings.ContainsRune("_@%+=:,./-", r) || unicode.IsLetter(r) || unicode.IsDigit(r)
	}
	if arg != "" && strings.IndexFunc(arg, func(r rune) bool { return !plain(r) }) < 0 {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}
