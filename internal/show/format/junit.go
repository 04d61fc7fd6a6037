package format

import (
	"encoding/xml"
	"io"

	"github.com/bridgetoll/bridgetoll/internal/show/document"
)

// junitFormat writes the conditions of a document as test cases in JUnit's XML, which GitLab,
// Jenkins, Azure Pipelines and Bitbucket read (Jenkins' schema, junit-10.xsd). A condition that is
// not certain is a skipped test: it neither passes nor fails.
var junitFormat = Format{Name: "junit", write: writeJUnit,
	Kinds: []document.Kind{document.AGate, document.PortList}}

var junitNames = map[document.Kind]string{document.AGate: "toll gate",
	document.PortList: "toll ports"}

type junitSuites struct {
	XMLName xml.Name   `xml:"testsuites"`
	Suite   junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string       `xml:"classname,attr"`
	Name    string       `xml:"name,attr"`
	Failure *junitReason `xml:"failure"`
	Skipped *junitReason `xml:"skipped"`
}

type junitReason struct {
	Message string `xml:"message,attr"`
}

func writeJUnit(w io.Writer, d document.Document, _ Options) error {
	s := junitSuite{Name: junitNames[d.Kind], Tests: len(d.Conditions)}
	for _, c := range d.Conditions {
		x := junitCase{Class: s.Name, Name: c.Text}
		switch c.Holds {
		case document.Bad:
			s.Failures++
			x.Failure = &junitReason{c.Why}
		case document.Doubtful:
			s.Skipped++
			x.Skipped = &junitReason{c.Why}
		}
		s.Cases = append(s.Cases, x)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(junitSuites{Suite: s}); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
