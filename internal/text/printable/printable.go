// Package printable makes foreign text safe to print on a terminal. Code that reads foreign text
// calls it once, on input.
//
// Visible characters of every script are kept. Control characters, those that change the direction
// of writing or have no width, unassigned ones and bytes that are not UTF-8 become Go's escapes,
// such as \x1b, \u202e and \xff. Printable text is not changed again.
package printable

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line returns s on one line; line breaks and tabs are escaped, too.
func Line(s string) string { return escape(s, "") }

// Text returns s with line breaks and tabs kept. "\r\n" becomes "\n".
func Text(s string) string { return escape(strings.ReplaceAll(s, "\r\n", "\n"), "\n\t") }

// Words returns s on one line, with any white space as one space.
func Words(s string) string { return Line(strings.Join(strings.Fields(s), " ")) }

// Capital returns s with its first letter in upper case.
func Capital(s string) string {
	if s == "" {
		return s
	}
	_, size := utf8.DecodeRuneInString(s)
	return strings.ToUpper(s[:size]) + s[size:]
}

// List returns the names in a sentence: "a, b and c".
func List(names []string) string { return joined(names, " and ") }

// Either returns the words in a sentence: "a, b or c".
func Either(words []string) string { return joined(words, " or ") }

func joined(words []string, last string) string {
	n := len(words) - 1
	if n < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:n], ", ") + last + words[n]
}

var bare = regexp.MustCompile(`^[A-Za-z0-9_.@:+/][A-Za-z0-9_.@:+/-]*$`)

// Bare reports whether names that others chose can be words of a command line as they are: a shell
// takes each as one word, and a program as no option.
func Bare(names ...string) bool {
	return !slices.ContainsFunc(names, func(s string) bool { return !bare.MatchString(s) })
}

// Limit returns s, cut after most characters.
func Limit(s string, most int) string {
	n := 0
	for i := range s {
		if n == most {
			return s[:i]
		}
		n++
	}
	return s
}

// Start returns Limit(s, most), with an ellipsis if text was cut.
func Start(s string, most int) string {
	if start := Limit(s, most); len(start) < len(s) {
		return start + "…"
	}
	return s
}

// End returns the end of s, at most most bytes in whole characters, after an ellipsis if text was
// cut.
func End(s string, most int) string {
	over := len(s) - most
	if over <= 0 {
		return s
	}
	for s = s[over:]; s != "" && !utf8.RuneStart(s[0]); {
		s = s[1:]
	}
	return "…" + s
}

func escape(s, keep string) string {
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case unicode.IsGraphic(r) || strings.ContainsRune(keep, r):
			b.WriteString(s[:size])
		default:
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		s = s[size:]
	}
	return b.String()
}

// Plain reports whether JSON text is ASCII without escapes. Its strings are then printable. It may
// return false for other text with printable strings.
func Plain(json []byte) bool {
	const del = 0x7f
	for _, c := range json {
		if c == '\\' || c >= del {
			return false
		}
	}
	return true
}

const tag = "printable"

// Fields makes all strings printable to which the pointer leads, in structs, slices and maps,
// including keys. It uses Line, or Text for fields with the tag `printable:"text"`.
func Fields(pointer any) { fields(reflect.ValueOf(pointer).Elem(), Line) }

func fields(v reflect.Value, clean func(string) string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(clean(v.String()))
	case reflect.Pointer:
		if !v.IsNil() {
			fields(v.Elem(), clean)
		}
	case reflect.Interface:
		if !v.IsNil() { // its value cannot be changed in place
			held := reflect.New(v.Elem().Type()).Elem()
			held.Set(v.Elem())
			fields(held, clean)
			v.Set(held)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			fields(v.Index(i), clean)
		}
	case reflect.Map:
		entries(v, clean)
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			switch {
			case !f.IsExported():
			case f.Tag.Get(tag) == "text":
				fields(v.Field(i), Text)
			default:
				fields(v.Field(i), clean)
			}
		}
	}
}

func entries(m reflect.Value, clean func(string) string) {
	for it := m.MapRange(); it.Next(); {
		was := it.Key()
		key, value := reflect.New(was.Type()).Elem(), reflect.New(m.Type().Elem()).Elem()
		key.Set(was)
		value.Set(it.Value())
		fields(key, clean)
		fields(value, clean)
		if !key.Equal(was) {
			m.SetMapIndex(was, reflect.Value{})
		}
		m.SetMapIndex(key, value)
	}
}
