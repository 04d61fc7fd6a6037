package secret

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// Typed hides the passwords that a command line has, although none should:
// [SCHEME://][USER]:PASSWORD@ and options of a URL such as password=PASSWORD.
type Typed struct {
	beside *strings.Replacer // hides them with the characters around them, however short they are
	alone  Set
}

// InArguments returns what hides the passwords in the arguments of a command.
func InArguments(args []string) Typed {
	var pairs, alone []string
	for _, arg := range args {
		for _, found := range passwordsIn(arg) {
			rest := strings.ReplaceAll(arg, found.before+found.password+found.after, "")
			open := strings.Contains(strings.ToLower(rest), strings.ToLower(found.password))
			for _, form := range formsOf(found.password) {
				pairs = append(pairs, found.before+form+found.after, found.before+Mask+found.after)
				for n := len(form) - 1; n >= shortest; n-- { // an error may quote the start of a long word
					pairs = append(pairs, found.before+form[:n]+`"`, found.before+Mask+`"`)
				}
				if !open {
					alone = append(alone, form)
				}
			}
		}
	}
	return Typed{strings.NewReplacer(pairs...), New(alone...)}
}

// Hide replaces the passwords in a printable text.
// A flag of toll that has one in its name stays, or nobody could type it.
func (t Typed) Hide(text string) string {
	parts := strings.Split(t.beside.Replace(text), passwordFlag)
	for i := range parts {
		parts[i] = t.alone.Hide(parts[i])
	}
	return strings.Join(parts, passwordFlag)
}

const passwordFlag = "--secret-env"

// formsOf returns how toll's errors may quote a password, printable.
func formsOf(password string) (out []string) {
	plain := []string{password}
	if decoded, err := url.PathUnescape(password); err == nil {
		plain = append(plain, decoded)
	}
	for _, p := range plain {
		quoted := strconv.Quote(p)
		out = append(out, printable.Line(p), printable.Line(quoted[1:len(quoted)-1]),
			printable.Line(strings.ReplaceAll(p, "'", `'\''`)),
			strings.TrimPrefix(url.UserPassword("", p).String(), ":"))
	}
	return out
}

type typed struct{ before, password, after string }

var (
	option = regexp.MustCompile(
		`(?i)[?&;\s]\w*(?:pass|pwd|secret|token|credential|key|auth)\w*=([^&;#\s]+)`)
	aPort = regexp.MustCompile(`^\d{1,5}[,/?#]`) // and what follows it, no password
)

// passwordsIn also looks into the elements of a list. A comma may be a password's, too.
func passwordsIn(arg string) (out []typed) {
	for _, m := range option.FindAllStringSubmatch(arg, -1) {
		out = append(out, typed{"=", m[1], ""})
	}
	for _, text := range append(strings.Split(arg, ","), arg) {
		first, urls, is := strings.Cut(text, "://")
		if !is {
			if user, _, _ := strings.Cut(first, ":"); !strings.ContainsAny(user, "[/ \t\n") {
				out = append(out, before(first)...)
			}
			continue
		}
		for _, at := range strings.Split(urls, "://") {
			if end := strings.IndexAny(at, "/?#"); end >= 0 && strings.Contains(at[:end], "@") {
				at = at[:end]
			}
			out = append(out, before(at)...)
		}
	}
	return out
}

// before returns the password before the last @.
func before(text string) []typed {
	i := strings.LastIndex(text, "@")
	if i < 0 || strings.HasPrefix(text[i:], "@sha256:") { // an image
		return nil
	}
	_, password, _ := strings.Cut(text[:i], ":")
	if password == "" || aPort.MatchString(password) {
		return nil
	}
	return []typed{{":", password, "@"}}
}
