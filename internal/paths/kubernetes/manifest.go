package kubernetes

import (
	"fmt"
	"io"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/bridgetoll/bridgetoll/internal/paths/cluster"
)

// podSecurity returns the level for pod-security.kubernetes.io/enforce that admits a run's pods.
func podSecurity(m cluster.Manifest) string {
	if m.Unprivileged {
		return "restricted"
	}
	return "privileged"
}

// checkManifest returns an error if a name is not valid for an object.
func checkManifest(m cluster.Manifest) error {
	check := func(what, name string, valid func(string) []string) error {
		if wrong := valid(name); len(wrong) > 0 {
			return fmt.Errorf("%s %q: %s", what, name, strings.Join(wrong, "; "))
		}
		return nil
	}
	if err := check("namespace", m.Namespace, validation.IsDNS1123Label); err != nil {
		return err
	}
	if err := check("account", m.Account, validation.IsDNS1123Subdomain); err != nil {
		return err
	}
	for _, n := range m.Nodes {
		if err := check("node", n, validation.IsDNS1123Subdomain); err != nil {
			return err
		}
	}
	return nil
}

// writeManifest writes the manifest as YAML for kubectl apply. The names must have passed
// checkManifest.
func writeManifest(m cluster.Manifest, w io.Writer) error {
	return manifest.Execute(w, map[string]any{
		"M":           m,
		"PodSecurity": podSecurity(m),
		"Namespaced":  rules(false, nil),
		"Cluster":     rules(true, m.Nodes),
		"ClusterName": m.Namespace + ":" + m.Account})
}

// rules returns the rules for one scope. With named it permits only get, because RBAC cannot permit
// list for named objects.
func rules(cluster bool, named []string) (out []namedRule) {
	for _, r := range Rules() {
		if r.Cluster != cluster {
			continue
		}
		n := namedRule{r, named}
		if len(named) > 0 {
			n.Verbs = []string{"get"}
		}
		out = append(out, n)
	}
	return out
}

type namedRule struct {
	Rule
	Named []string
}

// list returns a YAML list. It escapes nothing, because the words are names or toll's own.
func list(words []string) string {
	var quoted []string
	for _, w := range words {
		quoted = append(quoted, `"`+w+`"`)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

var manifest = template.Must(template.New("manifest").Funcs(
	template.FuncMap{"list": list, "join": strings.Join}).Parse(
	`# What toll needs to measure in a cluster, and no more. A user who may create roles applies it:
#
#	kubectl apply -f FILE
#
# Runs then use this service account. A token for it, for an hour, as a kubeconfig's user:
#
#	kubectl config set-credentials {{.M.Account}} --token "$(kubectl -n {{.M.Namespace}} create token {{.M.Account}} --duration 1h)"
#	kubectl config set-context {{.M.Account}} --cluster CLUSTER --user {{.M.Account}} --namespace {{.M.Namespace}}
#	toll compare --on kubernetes --context {{.M.Account}}{{if .M.Unprivileged}} --unprivileged{{end}}{{with .M.Nodes}} --nodes {{join . ","}}{{end}}
#
# To give the rights to people instead, name them as subjects of both bindings: {kind: User, name: NAME}.
apiVersion: v1
kind: Namespace
metadata:
  name: "{{.M.Namespace}}"
  labels:
{{- if .M.Unprivileged}}
    # Nothing that toll makes with --unprivileged is more than this level of Pod Security lets in.
{{- else}}
    # An agent reads what its node counts: it is in the node's network and needs CAP_NET_ADMIN there.
    # toll kubernetes manifest --unprivileged is for runs without it.
{{- end}}
    pod-security.kubernetes.io/enforce: {{.PodSecurity}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: "{{.M.Account}}", namespace: "{{.M.Namespace}}"}
# The pods get no token: the account is for whoever measures.
automountServiceAccountToken: false
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: "{{.M.Account}}", namespace: "{{.M.Namespace}}"}
rules:
{{- range .Namespaced}}
- {apiGroups: ["{{.Group}}"], resources: {{list .Resources}}, verbs: {{list .Verbs}}}
{{- end}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: "{{.M.Account}}", namespace: "{{.M.Namespace}}"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: "{{.M.Account}}"}
subjects:
- {kind: ServiceAccount, name: "{{.M.Account}}", namespace: "{{.M.Namespace}}"}
{{- with .Cluster}}
---
# Nodes are in no namespace: their names, addresses and labels are only read.
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "{{$.ClusterName}}"}
rules:
{{- range .}}
- {apiGroups: ["{{.Group}}"], resources: {{list .Resources}}{{with .Named}}, resourceNames: {{list .}}{{end}}, verbs: {{list .Verbs}}}
{{- end}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "{{$.ClusterName}}"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "{{$.ClusterName}}"}
subjects:
- {kind: ServiceAccount, name: "{{$.M.Account}}", namespace: "{{$.M.Namespace}}"}
{{- end}}
`))
