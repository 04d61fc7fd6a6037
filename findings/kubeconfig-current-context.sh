#!/bin/bash
# One would guess that with KUBECONFIG=a:b every client of Kubernetes works in the context that
# `kubectl config current-context` shows: that of the first file, as the documentation on merging
# has it ("the first file to set a particular value or map key wins").
#
# JavaScript's client takes the last file's, and so does Python's load_kube_config: a script works
# in another cluster than kubectl did a line before. Python's load_config takes the list for the
# name of one file, which does not exist, and goes on to the service account of the pod that it is
# in.
#
# kubernetes 37.0.2 (PyPI), @kubernetes/client-node 1.4.0 (npm; 2.0.1 needs Node 22), kubectl
# 1.20.2 (Debian's kubernetes-client 1.20.5+really1.20.2-1.1+deb12u1), 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

deb_get kubernetes-client=1.20.5+really1.20.2-1.1+deb12u1
pip_get kubernetes==37.0.2
npm_get @kubernetes/client-node@1.4.0
for name in a b; do
	cat >$name <<END
apiVersion: v1
kind: Config
current-context: $name
clusters: [{ name: $name, cluster: { server: "https://$name.test" } }]
users: [{ name: $name, user: { token: $name } }]
contexts: [{ name: $name, context: { cluster: $name, user: $name } }]
END
done
cat >context.py <<'END'
from kubernetes import client, config
for load in config.load_config, config.load_kube_config:
    try:
        load()
        print(client.Configuration.get_default_copy().host)
    except config.ConfigException as e:
        print(e)
END
cat >context.mjs <<'END'
import { KubeConfig } from '@kubernetes/client-node'
const config = new KubeConfig()
config.loadFromDefault()
console.log(config.getCurrentCluster().server)
END
export KUBECONFIG=$dir/a:$dir/b
expect "kubectl" https://a.test "$(debian kubectl config view --minify -o 'jsonpath={..server}')"
py/bin/python context.py >python 2>/dev/null
expect "Python, load_config" "Service host/port is not set." "$(sed -n 2p python)"
expect "Python, load_kube_config" https://b.test "$(sed -n 3p python)"
expect "JavaScript" https://b.test "$(node context.mjs)"
