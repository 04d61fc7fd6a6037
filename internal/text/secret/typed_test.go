package secret

import (
	"fmt"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

func TestInArguments(t *testing.T) {
	for _, tt := range []struct{ arg, want string }{
		{"postgres://app:s3cretpw@127.0.0.1:5432/shop", "postgres://app:***@127.0.0.1:5432/shop"},
		{"--baseline=postgres://app:s3cretpw@h/d", "--baseline=postgres://app:***@h/d"},
		{"a=http://u:one1@a,b=http://u:two22@b", "a=http://u:***@a,b=http://u:***@b"},
		{"app:s3cretpw@h:6379", "app:***@h:6379"},
		{"app:s3@h:1,app:pw@h:2", "app:***@h:1,app:***@h:2"},
		{":s3cretpw@h:6379", ":***@h:6379"},
		{"app:s3cretpw@tcp(h:3306)/shop", "app:***@tcp(h:3306)/shop"},
		{"postgres://app:p@ss:w@h/d", "postgres://app:***@h/d"},
		{"postgres://app:pa/ss@h/d", "postgres://app:***@h/d"},
		{"postgres://app:pa,ss word@h/d", "postgres://app:***@h/d"},
		{"postgres://postgres:postgres@h/d", "postgres://postgres:***@h/d"},
		{"mysql://app@h/d?ssl=1&password=hunter22&x=1", "mysql://app@h/d?ssl=1&password=***&x=1"},
		{"host=h password=pw", "host=h password=***"},
		{"http://h:8080/a@b", "http://h:8080/a@b"},
		{"http://h:8080?to=a@b", "http://h:8080?to=a@b"},
		{"a:22,me@b:22", "a:22,me@b:22"},
		{"alpine:3.20@sha256:0123456789abcdef", "alpine:3.20@sha256:0123456789abcdef"},
		{"rack2=me@c:2222", "rack2=me@c:2222"},
		{"auth=127.0.0.1:80", "auth=127.0.0.1:80"},
		{"--secret-env=DB_PASSWORD", "--secret-env=DB_PASSWORD"},
	} {
		hide := InArguments([]string{"compare", tt.arg})
		for _, format := range []string{"open %s: no such file", "%q is not a mode", "toll '%s'"} {
			text := printable.Line(fmt.Sprintf(format, tt.arg))
			if got, want := hide.Hide(text), fmt.Sprintf(format, tt.want); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
	}
}

// A password that is a word of toll's flag for passwords does not hide that flag.
func TestFlagStays(t *testing.T) {
	hide := InArguments([]string{"postgres://app:secret@h/d"})
	if got, want := hide.Hide("secret: use --secret-env, not secret-x"),
		"***: use --secret-env, not ***-x"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// However an error quotes the password, and without what is around it.
func TestFormsInArguments(t *testing.T) {
	for _, password := range []string{`s3cr"et\pw`, "s3cret'pw", "s3cret\x1bpw", "s3cret%20pw",
		"pässwörd"} {
		hide := InArguments([]string{"postgres://app:" + password + "@h"})
		for _, form := range formsOf(password) {
			if got := hide.Hide("no port " + form + " here"); got != "no port *** here" {
				t.Errorf("%q: %s", password, got)
			}
			if got := hide.Hide(`"app:` + form[:6] + `": no port`); got != `"app:***": no port` {
				t.Errorf("%q, cut: %s", password, got)
			}
		}
	}
}
