package kubernetes

// The value of runLabel is the run's ID. The mark of the run's toll (see journal.Mark) is too long
// for a label, so it is an annotation.
const (
	runLabel        = "io.bridgetoll/run"
	roleLabel       = "io.bridgetoll/role"
	ownerAnnotation = "io.bridgetoll/owner"
)

// namePrefix is the prefix of all names, which are toll-RUN-ROLE-N.
const namePrefix = "toll-"

const containerName = "toll"

// Rule is a permission that a run needs, in RBAC's terms.
type Rule struct {
	Group     string // of the API; "" is core
	Resources []string
	Verbs     []string
	// Cluster means that the objects are cluster-scoped, so the rule belongs in a ClusterRole.
	Cluster bool
}

// Rules returns the least permissions that a run and toll clean need. An exec stream over WebSocket
// needs get, and since Kubernetes 1.35 also create.
func Rules() []Rule {
	return []Rule{
		{Resources: []string{"nodes"}, Verbs: []string{"get", "list"}, Cluster: true},
		{Resources: []string{"pods"}, Verbs: []string{"create", "get", "list", "delete"}},
		{Resources: []string{"pods/exec"}, Verbs: []string{"get", "create"}},
		{Resources: []string{"services"}, Verbs: []string{"create", "get", "list", "delete"}},
	}
}
