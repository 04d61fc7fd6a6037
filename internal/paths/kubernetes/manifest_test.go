package kubernetes

import (
	"bytes"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/bridgetoll/bridgetoll/internal/paths/cluster"
)

func TestManifest(t *testing.T) {
	for name, m := range map[string]cluster.Manifest{
		"whole":        {Namespace: "toll", Account: "toll"},
		"unprivileged": {Namespace: "net-perf", Account: "me", Unprivileged: true},
		// YAML reads these words as other types
		"nodes": {Namespace: "true", Account: "null", Nodes: []string{"10.1", "a.b"}},
	} {
		t.Run(name, func(t *testing.T) {
			if err := checkManifest(m); err != nil {
				t.Fatal(err)
			}
			var text bytes.Buffer
			if err := writeManifest(m, &text); err != nil {
				t.Fatal(err)
			}
			type object struct {
				Kind     string
				Metadata struct {
					Name, Namespace string
					Labels          map[string]string
				}
				Rules []struct {
					APIGroups, Resources, Verbs, ResourceNames []string
				}
				Subjects []struct{ Name, Namespace string }
			}
			kinds, given := map[string]object{}, 0
			for in := yaml.NewYAMLOrJSONDecoder(&text, 4096); ; {
				var o object
				if err := in.Decode(&o); err != nil {
					if err.Error() != "EOF" {
						t.Fatal(err)
					}
					break
				}
				kinds[o.Kind] = o
				given += len(o.Rules)
				for _, s := range o.Subjects {
					if s.Name != m.Account || s.Namespace != m.Namespace {
						t.Errorf("%s: bound to %+v", o.Kind, s)
					}
				}
			}
			if len(kinds) != 6 || given != len(Rules()) {
				t.Errorf("%d kinds, %d rules of %d", len(kinds), given, len(Rules()))
			}
			for _, r := range Rules() {
				kind := "Role"
				if r.Cluster {
					kind = "ClusterRole"
				}
				found := false
				for _, g := range kinds[kind].Rules {
					if !equal(g.Resources, r.Resources) {
						continue
					}
					found = true
					want := r.Verbs
					if r.Cluster && m.Nodes != nil {
						want = []string{"get"}
					}
					if !equal(g.Verbs, want) || !equal(g.APIGroups, []string{r.Group}) ||
						r.Cluster && !equal(g.ResourceNames, m.Nodes) {
						t.Errorf("%+v for %+v", g, r)
					}
				}
				if !found {
					t.Errorf("nothing for %+v", r)
				}
			}
			level := "privileged"
			if m.Unprivileged {
				level = "restricted"
			}
			if got := kinds["Namespace"].Metadata; got.Name != m.Namespace ||
				got.Labels["pod-security.kubernetes.io/enforce"] != level {
				t.Errorf("namespace %+v", got)
			}
		})
	}
}

func equal(a, b []string) bool { return strings.Join(a, " ") == strings.Join(b, " ") }

func TestManifestRefuses(t *testing.T) {
	for _, m := range []cluster.Manifest{
		{Namespace: "", Account: "a"}, {Namespace: "A", Account: "a"},
		{Namespace: "a\nkind: Pod", Account: "a"},
		{Namespace: "a", Account: `"`}, {Namespace: "a", Account: "a", Nodes: []string{"a", "b}"}},
	} {
		if checkManifest(m) == nil {
			t.Errorf("%+v passes", m)
		}
	}
}
