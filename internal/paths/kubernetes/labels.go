package kubernetes

// The label runLabel has the run's ID, because the mark of its toll (see package owner) does not
// fit into a label.
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
	// Cluster means that the objects are not in a namespace.
	Cluster bool
}

// Rules returns the least permissions that a run and toll clean need. An exec stream is a GET over
// WebSocket and a POST over SPDY.
func Rules() []Rule {
	return []Rule{
		{Resources: []string{"nodes"}, Verbs: []string{"get", "list"}, Cluster: true},
		{Resources: []string{"pods"}, Verbs: []string{"create", "get", "list", "delete"}},
		{Resources: []string{"pods/exec"}, Verbs: []string{"get", "create"}},
		{Resources: []string{"services"}, Verbs: []string{"create", "get", "list", "delete"}},
	}
}
