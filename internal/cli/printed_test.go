package cli

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// source has the texts of toll's code: string constants and what is joined to them.
type source struct {
	consts map[string]string // of one package
}

type printed struct{ at, text string }

// unknown stands for the part of a text that only a run knows.
const unknown = "…"

var verb = regexp.MustCompile(`%(\[\d+\])?[a-zA-Z]`)

// printedTexts returns the texts of the code without tests, in which a value that is no constant is
// "…".
func printedTexts(t *testing.T) (out []printed) {
	t.Helper()
	dirs := map[string][]*ast.File{}
	files := token.NewFileSet()
	err := filepath.WalkDir("..", func(p string, d fs.DirEntry, err error) error {
		if d.IsDir() && (d.Name() == "testing" || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if err != nil || filepath.Ext(p) != ".go" || strings.HasSuffix(p, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(files, p, nil, parser.SkipObjectResolution)
		dirs[filepath.Dir(p)] = append(dirs[filepath.Dir(p)], f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, all := range dirs {
		s := source{consts: map[string]string{}}
		for range 2 { // constants made of others
			for _, f := range all {
				ast.Inspect(f, s.noteConst)
			}
		}
		for _, f := range all {
			ast.Inspect(f, func(n ast.Node) bool {
				x, is := n.(ast.Expr)
				text, constant := "", false
				if is {
					text, constant = s.text(x)
				}
				if _, named := n.(*ast.Ident); !constant || named {
					return true
				}
				at := files.Position(n.Pos())
				out = append(out, printed{fmt.Sprintf("%s:%d", at.Filename, at.Line),
					verb.ReplaceAllString(text, unknown)})
				return false
			})
		}
	}
	return out
}

func (s *source) noteConst(n ast.Node) bool {
	spec, is := n.(*ast.ValueSpec)
	if !is {
		return true
	}
	for i, name := range spec.Names {
		if i < len(spec.Values) {
			if text, ok := s.text(spec.Values[i]); ok {
				s.consts[name.Name] = text
			}
		}
	}
	return true
}

// text returns the text of an expression, or false if no part of it is known.
func (s *source) text(x ast.Expr) (string, bool) {
	switch x := x.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(x.Value)
		return text, err == nil && x.Kind == token.STRING
	case *ast.Ident:
		text, ok := s.consts[x.Name]
		return text, ok
	case *ast.BinaryExpr:
		a, first := s.text(x.X)
		b, second := s.text(x.Y)
		if x.Op != token.ADD || !first && !second {
			return "", false
		}
		if !first {
			a = unknown
		}
		if !second {
			b = unknown
		}
		return a + b, true
	}
	return "", false
}

var (
	tollIn = regexp.MustCompile(`(?:^|[^\w./"-])toll ([a-z]+)((?: [^;()]*)?)`)
	// noProse matches what prose has not: words of a command line besides flags and modes.
	noProse = regexp.MustCompile(`[0-9./:=@'"{}…]|^[A-Z]+$`)
	blank   = regexp.MustCompile(`[{]+[^}]*[}]+`)
)

// TestPrintedCommands tries the command lines of toll that stand in the code's texts, up to where
// prose follows. Errors, hints, findings and help print them.
func TestPrintedCommands(t *testing.T) {
	texts, checked := printedTexts(t), 0
	t.Chdir(t.TempDir())
	for _, p := range texts {
		for _, m := range tollIn.FindAllStringSubmatch(p.text, -1) {
			args := commandIn(m[1], m[2])
			if len(args) < 2 || args[1] == "--help" {
				continue
			}
			checked++
			err := accepted(args)
			if err != nil && !bare(args) { // else what flags do is told, and no command offered
				t.Errorf("%s: toll %q: %v", p.at, args, err)
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d command lines", checked)
	}
}

// bare reports whether a command line has flags only.
func bare(args []string) bool {
	c, rest, err := newRoot(env{}).Find(args)
	return err == nil && c.ParseFlags(rest) == nil && c.Flags().NArg() == 0
}

// commandIn returns the words of a command line at the beginning of a text, or nil if name is no
// command. Blanks of templates become "…".
func commandIn(name, rest string) (args []string) {
	root := newRoot(env{})
	c, _, err := root.Find([]string{name})
	if err != nil || c == root {
		return nil
	}
	args = []string{name}
	value := false
	for _, w := range shellWords(rest) {
		last := strings.TrimRight(w, ",.:?")
		if !strings.Contains(w, " ") { // {host} in a quoted command is no blank
			last = blank.ReplaceAllString(last, unknown)
		}
		_, err := parseModes([]string{last}, backendNames())
		if !strings.HasPrefix(w, "-") && !value && err != nil && !noProse.MatchString(last) {
			break
		}
		f := c.Flags().Lookup(strings.TrimLeft(last, "-"))
		args, value = append(args, last), w[0] == '-' && f != nil && f.NoOptDefVal == ""
		if last != w {
			break
		}
	}
	return args
}
